import pg from 'pg';
import { refused, section, show } from './matrix.mjs';

const customers = 'SELECT id, name, email, tags, paid, doc, u, d::text, f4, f8, i2, b, ts::text, tz, t, n, big, i, ints, c FROM shop.customers ORDER BY id';
const c = new pg.Client();
await c.connect();
await section('values', async () => {
  const r = await c.query(customers);
  show(r);
  console.log(r.command, r.rowCount, r.fields.map((f) => [f.name, f.dataTypeID, f.dataTypeSize, f.dataTypeModifier, f.format]));
});
await section('parameters', async () => {
  show(await c.query('SELECT $1::int + 1 AS a, $2::text AS b, $3::text[] AS c, $4::jsonb AS d, $5::timestamptz AS e', [1, "it's", ['a', null], { k: 1 }, new Date(0)]));
  show(await c.query({ text: 'SELECT id, name FROM shop.customers WHERE id = $1', values: [2], rowMode: 'array' }));
});
await section('prepared', async () => {
  for (let i = 1; i < 4; i++) show(await c.query({ name: 'p', text: 'SELECT name FROM shop.customers WHERE id = $1', values: [i] }));
});
await section('binary', async () => {
  show(await c.query({ text: 'SELECT id, line, customer FROM shop.orders WHERE id = $1 ORDER BY line', values: [3], binary: true }));
});
await section('several statements', async () => {
  for (const r of await c.query('SELECT 1 AS a; SELECT 2 AS b')) show(r);
});
await section('errors', async () => {
  await refused(() => c.query('SELECT 1/0'));
  await refused(() => c.query('SELECT * FROM nosuch WHERE x = $1', [1]));
  await refused(() => c.query('SELECT $1::int', ['x']));
  await refused(() => c.query('SELECT nosuch FROM shop.orders'));
});
await section('transactions', async () => {
  await c.query('BEGIN');
  console.log((await c.query('INSERT INTO loads VALUES ($1, $2, $3) RETURNING *', [1, 'a', '1.5'])).rows);
  await c.query('SAVEPOINT s');
  await refused(() => c.query('INSERT INTO loads VALUES (1)'));
  await refused(() => c.query('SELECT 1'));
  await c.query('ROLLBACK TO SAVEPOINT s');
  await c.query('COMMIT');
  show(await c.query('SELECT * FROM loads'));
  console.log((await c.query('DELETE FROM loads')).rowCount);
});
process.noDeprecation = true; // of the queue of queries, which is asked here
await section('pipelined', async () => {
  const all = await Promise.all([1, 2, 3].map((i) => c.query('SELECT $1::int AS i', [i])));
  console.log(all.map((r) => r.rows[0].i));
});
await section('empty', async () => {
  console.log((await c.query('')).rowCount, (await c.query('-- nothing')).rowCount);
});
await section('notices', async () => {
  const got = [];
  c.on('notice', (n) => got.push([n.severity, n.code, n.message]));
  await c.query('COMMIT');
  await c.query('DROP TABLE IF EXISTS nosuch');
  console.log(got);
});
await section('timeout', async () => {
  await c.query("SET statement_timeout = '100ms'");
  await refused(() => c.query('SELECT pg_sleep(60)'));
});
await c.end();
await section('pool', async () => {
  const pool = new pg.Pool({ max: 2 });
  console.log((await Promise.all([1, 2, 3, 4].map((i) => pool.query('SELECT $1::int AS i', [i])))).map((r) => r.rows[0].i));
  await pool.end();
});
