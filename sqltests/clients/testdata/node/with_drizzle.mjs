import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { asc, count, desc, eq, inArray, relations, sql, sum } from 'drizzle-orm';
import { drizzle as onPg } from 'drizzle-orm/node-postgres';
import { migrate } from 'drizzle-orm/postgres-js/migrator';
import { bigint, boolean, integer, jsonb, numeric, pgSchema, serial, text, timestamp, unique, varchar } from 'drizzle-orm/pg-core';
import { drizzle } from 'drizzle-orm/postgres-js';
import { Kysely, PostgresDialect, sql as raw } from 'kysely';
import pg from 'pg';
import postgres from 'postgres';
import { refused, say, section } from './matrix.mjs';

const s = pgSchema('dz');
const state = s.enum('state', ['new', 'paid']);
const users = s.table('users', {
  id: serial('id').primaryKey(),
  email: varchar('email', { length: 80 }).notNull().unique(),
  state: state('state').default('new').notNull(),
  score: numeric('score', { precision: 10, scale: 2 }),
  tags: text('tags').array(),
  doc: jsonb('doc'),
  on: boolean('on').default(true),
  at: timestamp('at', { withTimezone: true }).defaultNow(),
});
const posts = s.table(
  'posts',
  {
    id: bigint('id', { mode: 'number' }).primaryKey().generatedAlwaysAsIdentity(),
    author: integer('author')
      .notNull()
      .references(() => users.id, { onDelete: 'cascade' }),
    title: text('title').notNull(),
  },
  (t) => [unique('posts_once').on(t.author, t.title)],
);
const usersOf = relations(users, ({ many }) => ({ posts: many(posts) }));
const postsOf = relations(posts, ({ one }) => ({ author: one(users, { fields: [posts.author], references: [users.id] }) }));

const folder = mkdtempSync(join(tmpdir(), 'drizzle-'));
mkdirSync(join(folder, 'meta'));
writeFileSync(
  join(folder, 'meta', '_journal.json'),
  JSON.stringify({
    version: '7',
    dialect: 'postgresql',
    entries: [
      { idx: 0, version: '7', when: 1700000000000, tag: '0000_first', breakpoints: true },
      { idx: 1, version: '7', when: 1700000001000, tag: '0001_second', breakpoints: true },
    ],
  }),
);
const statements = [
  'CREATE SCHEMA "dz";',
  `CREATE TYPE "dz"."state" AS ENUM('new', 'paid');`,
  `CREATE TABLE IF NOT EXISTS "dz"."users" ("id" serial PRIMARY KEY NOT NULL, "email" varchar(80) NOT NULL, "state" "dz"."state" DEFAULT 'new' NOT NULL, "score" numeric(10, 2), "tags" text[], "doc" jsonb, "on" boolean DEFAULT true, "at" timestamp with time zone DEFAULT now(), CONSTRAINT "users_email_unique" UNIQUE("email"));`,
  `CREATE TABLE IF NOT EXISTS "dz"."posts" ("id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "dz"."posts_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1), "author" integer NOT NULL, "title" text NOT NULL, CONSTRAINT "posts_once" UNIQUE("author","title"));`,
  `DO $$ BEGIN
 ALTER TABLE "dz"."posts" ADD CONSTRAINT "posts_author_users_id_fk" FOREIGN KEY ("author") REFERENCES "dz"."users"("id") ON DELETE cascade ON UPDATE no action;
EXCEPTION
 WHEN duplicate_object THEN null;
END $$;`,
];
writeFileSync(join(folder, '0000_first.sql'), statements.join('\n--> statement-breakpoint\n'));
writeFileSync(
  join(folder, '0001_second.sql'),
  `${statements[4]}\n--> statement-breakpoint\nCREATE INDEX IF NOT EXISTS "users_state" ON "dz"."users" USING btree ("state");`,
);

const client = postgres({ ssl: false, max: 1, onnotice: () => {} });
const db = drizzle(client, { schema: { users, posts, usersOf, postsOf } });
await section('drizzle migrate', async () => {
  await migrate(db, { migrationsFolder: folder });
  await migrate(db, { migrationsFolder: folder });
  say(await db.execute(sql`SELECT id, created_at FROM drizzle.__drizzle_migrations ORDER BY id`));
});
await section('drizzle write', async () => {
  say(
    await db
      .insert(users)
      .values([
        { email: 'a@x', score: '1.5', tags: ['a', 'b c'], doc: { k: [1] } },
        { email: 'b@x', state: 'paid' },
      ])
      .returning({ id: users.id, email: users.email, state: users.state, tags: users.tags, doc: users.doc }),
  );
  say(
    await db
      .insert(posts)
      .values([
        { author: 1, title: 'x' },
        { author: 1, title: 'y' },
        { author: 2, title: 'z' },
      ])
      .returning(),
  );
  say(
    await db
      .insert(users)
      .values([{ email: 'c@x' }, { email: 'a@x', score: '2' }])
      .onConflictDoUpdate({ target: users.email, set: { score: sql`excluded.score` } })
      .returning({ id: users.id, score: users.score }),
  );
  say(await db.insert(posts).values({ author: 1, title: 'x' }).onConflictDoNothing().returning());
  say(
    await db
      .update(users)
      .set({ score: sql`${users.score} + 1` })
      .where(eq(users.email, 'a@x'))
      .returning({ score: users.score }),
  );
  say(await db.delete(posts).where(eq(posts.title, 'z')).returning({ id: posts.id }));
});
await section('drizzle read', async () => {
  say(
    await db.query.users.findMany({
      columns: { id: true, email: true },
      with: { posts: { columns: { title: true }, orderBy: [asc(posts.title)] } },
      orderBy: [asc(users.id)],
    }),
  );
  say(await db.query.posts.findFirst({ with: { author: { columns: { email: true, doc: true } } }, orderBy: [desc(posts.id)] }));
  say(
    await db
      .select({ email: users.email, n: count(posts.id) })
      .from(users)
      .leftJoin(posts, eq(posts.author, users.id))
      .groupBy(users.email)
      .having(sql`count(*) > 0`)
      .orderBy(users.email),
  );
  say(
    await db
      .select({ s: sum(users.score) })
      .from(users)
      .where(inArray(users.id, [1, 2])),
  );
  const w = db.$with('w').as(db.select({ a: posts.author }).from(posts));
  say(await db.with(w).selectDistinct().from(w).orderBy(w.a).limit(1));
  say(await db.$count(users, eq(users.on, true)));
  const p = db
    .select({ id: users.id })
    .from(users)
    .where(eq(users.email, sql.placeholder('e')))
    .prepare('by_email');
  say([await p.execute({ e: 'a@x' }), await p.execute({ e: 'nosuch' })]);
});
await section('drizzle transactions', async () => {
  await db
    .transaction(async (t) => {
      await t.insert(users).values({ email: 'gone' });
      t.rollback();
    })
    .catch((e) => console.log(e.message));
  await db.transaction(
    async (t) => {
      await t.insert(users).values({ email: 'kept' });
      await t
        .transaction(async (u) => {
          await u.insert(users).values({ email: 'lost' });
          u.rollback();
        })
        .catch((e) => console.log(e.message));
      say(await t.select({ id: users.id }).from(users).where(eq(users.email, 'kept')).for('update'));
    },
    { isolationLevel: 'repeatable read', accessMode: 'read write' },
  );
  say(await db.select({ email: users.email }).from(users).orderBy(users.email));
});
await section('drizzle on node-postgres', async () => {
  const pool = new pg.Pool({ max: 1 });
  const other = onPg(pool);
  say(await other.select({ id: users.id, score: users.score, tags: users.tags }).from(users).orderBy(users.id).limit(2));
  await pool.end();
});
await section('postgres.js', async () => {
  const q = client;
  say(await q`SELECT id, email, tags, doc FROM dz.users WHERE id = ANY(${[1, 2]}) ORDER BY id`);
  say(
    await q`INSERT INTO dz.users ${q([
      { email: 'p1', score: 1 },
      { email: 'p2', score: 2 },
    ])} RETURNING email, score`,
  );
  say(await q`UPDATE dz.users SET ${q({ score: 5, state: 'paid' })} WHERE email IN ${q(['p1', 'p2'])} RETURNING email, score, state`);
  const rows = [];
  await q`SELECT title FROM dz.posts ORDER BY id`.cursor(1, (r) => {
    rows.push(...r);
  });
  say(rows);
  say((await q`SELECT ${q(['email', 'state'])} FROM dz.users`.describe()).columns.map((c) => [c.name, c.type > 16384 ? 'own' : c.type]));
  say(
    await q.begin(async (t) => {
      await t`DELETE FROM dz.users WHERE email = 'p1'`;
      await t
        .savepoint(async (u) => {
          await u`DELETE FROM dz.users`;
          throw new Error('back');
        })
        .catch((e) => console.log(e.message));
      return t`SELECT count(*) FROM dz.users`;
    }),
  );
  say(await q.unsafe('SELECT 1 AS a; SELECT 2 AS b'));
  await refused(() => q`SELECT * FROM nosuch`);
  await refused(() => q`INSERT INTO dz.users (email) VALUES ('a@x')`);
  await refused(() => q`SELECT ${'x'}::int`);
  say((await Promise.all([1, 2, 3].map((i) => q`SELECT ${i}::int AS i`))).map((r) => r[0].i));
});
await client.end();
const k = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool({ max: 2 }) }) }).withSchema('dz');
await section('kysely', async () => {
  await k.schema
    .createTable('kt')
    .ifNotExists()
    .addColumn('id', 'integer', (c) => c.generatedByDefaultAsIdentity().primaryKey())
    .addColumn('name', 'varchar(20)', (c) => c.notNull().unique())
    .addColumn('n', 'numeric(6, 2)', (c) => c.defaultTo(0).check(raw`n >= 0`))
    .addColumn('user', 'integer', (c) => c.references('dz.users.id').onDelete('set null'))
    .execute();
  await k.schema.alterTable('kt').addColumn('more', 'text').execute();
  await k.schema.createIndex('kt_n').on('kt').columns(['n', 'name desc']).execute();
  say(
    await k
      .insertInto('kt')
      .values([
        { name: 'a', n: 1, user: 1 },
        { name: 'b', user: 2 },
      ])
      .returningAll()
      .execute(),
  );
  say(
    await k
      .insertInto('kt')
      .values({ name: 'a', n: 3 })
      .onConflict((c) => c.column('name').doUpdateSet((e) => ({ n: e.ref('excluded.n') })))
      .returning(['id', 'n'])
      .executeTakeFirst(),
  );
  say(
    await k
      .selectFrom('kt')
      .innerJoin('users', 'users.id', 'kt.user')
      .select(['kt.name', 'users.email'])
      .select((e) =>
        e.fn
          .sum('kt.n')
          .over((o) => o.orderBy('kt.id'))
          .as('run'),
      )
      .where('kt.n', '>=', 0)
      .orderBy('kt.id')
      .execute(),
  );
  say(
    await k
      .updateTable('kt')
      .from('users')
      .set({ more: 'm' })
      .whereRef('users.id', '=', 'kt.user')
      .where('users.email', '=', 'b@x')
      .returning('kt.name')
      .execute(),
  );
  say((await k.deleteFrom('kt').where('name', 'in', ['a', 'zz']).executeTakeFirst()).numDeletedRows.toString());
  say(
    (await k.introspection.getTables())
      .filter((t) => t.schema === 'dz')
      .map((t) => [t.name, t.isView, t.columns.map((c) => [c.name, c.dataType, c.isNullable, c.hasDefaultValue, c.isAutoIncrementing])])
      .sort((x, y) => (x[0] < y[0] ? -1 : 1)),
  );
  await k.schema.dropTable('kt').execute();
});
await section('drop', async () => {
  await raw`DROP SCHEMA dz CASCADE`.execute(k);
  await raw`DROP SCHEMA drizzle CASCADE`.execute(k);
});
await k.destroy();
