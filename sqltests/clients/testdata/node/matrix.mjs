// Prints sections for the comparison with PostgreSQL: "## name", then lines.
export async function section(name, run) {
  console.log('##', name);
  try {
    await run();
  } catch (e) { // the other sections are of interest all the same
    console.log('FAILED', e.code ?? '', e.message);
  }
}

export async function refused(run) {
  try {
    console.log('not refused', await run());
  } catch (e) {
    console.log(e.code, e.message, e.position ?? '', e.hint ?? '');
  }
}

export function show(result) {
  for (const row of result.rows) console.log(JSON.stringify(row));
}
