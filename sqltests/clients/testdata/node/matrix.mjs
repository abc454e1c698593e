// Prints sections for the comparison with PostgreSQL: "## name", then lines.
export async function section(name, run) {
  console.log('##', name);
  try {
    await run();
  } catch (e) { // the other sections are of interest all the same
    console.log('FAILED', codeOf(e), e.message);
  }
}

// codeOf is the server's, which mappers keep in an error of theirs.
function codeOf(e) {
  return e.code ?? e.parent?.code ?? e.cause?.code ?? '';
}

export async function refused(run) {
  try {
    console.log('not refused', await run());
  } catch (e) {
    console.log(codeOf(e), e.message, e.position ?? '', e.hint ?? '');
  }
}

export function show(result) {
  for (const row of result.rows) console.log(JSON.stringify(row));
}

export function say(value) {
  console.log(JSON.stringify(value));
}
