import 'reflect-metadata';
import { DataSource, EntitySchema, Table, TableColumn, TableIndex, TableForeignKey, In, ILike, Not, IsNull, Between, Raw } from 'typeorm';
import { refused, say, section } from './matrix.mjs';
const conn = {
  type: 'postgres',
  host: process.env.PGHOST,
  port: +process.env.PGPORT,
  username: 'postgres',
  password: 'unused',
  database: process.env.PGDATABASE,
  schema: 'orm',
  logging: false,
  installExtensions: false,
};
const Author = new EntitySchema({
  name: 'Author',
  tableName: 'author',
  columns: {
    id: { type: 'int', primary: true, generated: true },
    email: { type: 'varchar', length: 80, unique: true },
    state: { type: 'enum', enum: ['new', 'paid'], default: 'new' },
    score: { type: 'numeric', precision: 10, scale: 2, nullable: true, comment: 'points' },
    tags: { type: 'text', array: true, default: '{}' },
    doc: { type: 'jsonb', nullable: true },
    born: { type: 'date', nullable: true },
    made: { type: 'timestamptz', createDate: true },
    changed: { type: 'timestamp', updateDate: true, precision: 3 },
    gone: { type: 'timestamptz', deleteDate: true },
    v: { type: 'int', version: true },
    flag: { type: Boolean, default: true },
    big: { type: 'bigint', default: 0 },
    small: { type: 'smallint', nullable: true },
    f: { type: 'float8', nullable: true },
    c: { type: 'char', length: 3, nullable: true },
  },
  relations: { posts: { type: 'one-to-many', target: 'Post', inverseSide: 'author', cascade: true } },
  indices: [{ name: 'author_both', columns: ['state', 'flag'] }],
  checks: [{ name: 'pos', expression: 'score >= 0' }],
});
const Post = new EntitySchema({
  name: 'Post',
  tableName: 'post',
  columns: { id: { type: 'bigint', primary: true, generated: 'identity' }, title: { type: String }, body: { type: 'text', nullable: true } },
  relations: {
    author: { type: 'many-to-one', target: 'Author', inverseSide: 'posts', onDelete: 'CASCADE', nullable: false },
    labels: { type: 'many-to-many', target: 'Label', joinTable: { name: 'post_label' }, cascade: true },
  },
});
const Label = new EntitySchema({ name: 'Label', tableName: 'label', columns: { name: { type: String, primary: true } } });
const View = new EntitySchema({
  name: 'Count',
  tableName: 'counts',
  type: 'view',
  expression: 'SELECT a.email AS email, count(p.id) AS n FROM orm.author a LEFT JOIN orm.post p ON p."authorId" = a.id GROUP BY a.email',
  columns: { email: { type: String, primary: true }, n: { type: 'bigint' } },
});
class First1700000000000 {
  name = 'First1700000000000';
  async up(r) {
    await r.createTable(
      new Table({
        schema: 'orm',
        name: 'mig',
        columns: [
          { name: 'id', type: 'int', isPrimary: true, isGenerated: true, generationStrategy: 'increment' },
          { name: 'name', type: 'varchar', length: '20' },
        ],
      }),
      true,
    );
    await r.addColumn('orm.mig', new TableColumn({ name: 'n', type: 'int', default: 3 }));
    await r.createIndex('orm.mig', new TableIndex({ name: 'mig_n', columnNames: ['n'] }));
    await r.addColumn('orm.mig', new TableColumn({ name: 'a', type: 'int', isNullable: true }));
    await r.createForeignKey(
      'orm.mig',
      new TableForeignKey({ name: 'mig_a', columnNames: ['a'], referencedTableName: 'orm.author', referencedColumnNames: ['id'] }),
    );
    await r.renameColumn('orm.mig', 'name', 'title');
    await r.changeColumn('orm.mig', 'title', new TableColumn({ name: 'title', type: 'varchar', length: '20', isNullable: true, default: "'x'" }));
  }
  async down(r) {
    await r.dropTable('orm.mig');
  }
}
const open = async (more) => new DataSource({ ...conn, entities: [Author, Post, Label, View], ...more }).initialize();
let db = await new DataSource(conn).initialize();
await section('schema', async () => {
  await db.query('CREATE SCHEMA orm');
});
await db.destroy();
await section('synchronize', async () => {
  db = await open({ synchronize: true });
});
await section('synchronize again', async () => {
  const log = await db.driver.createSchemaBuilder().log();
  say(log.upQueries.map((q) => q.query));
  await db.synchronize();
});
await section('tables', async () => {
  const r = db.createQueryRunner();
  for (const t of (await r.getTables(['orm.author', 'orm.post', 'orm.post_label'])).sort((x, y) => (x.name < y.name ? -1 : 1))) {
    say([
      t.name,
      t.columns.map((c) => ({ ...c, enum: c.enum && [...c.enum].sort(), '@instanceof': undefined })).sort((x, y) => (x.name < y.name ? -1 : 1)),
      t.indices.map((i) => i.name + i.columnNames + i.isUnique).sort(),
      t.uniques.map((u) => u.name + u.columnNames).sort(),
      t.checks.map((u) => u.name + u.expression).sort(),
      t.foreignKeys.map((k) => [k.name, k.columnNames, k.referencedTableName, k.onDelete]).sort(),
    ]);
  }
  await r.release();
});
await section('save', async () => {
  const a = await db
    .getRepository('Author')
    .save({
      email: 'a@x',
      score: '1.5',
      tags: ['x', 'y z'],
      doc: { k: [1] },
      born: '2000-01-02',
      c: 'ab',
      posts: [{ title: 't1', labels: [{ name: 'red' }, { name: 'blue' }] }, { title: 't2' }],
    });
  say([a.id, a.state, a.v, a.flag, a.big, a.posts.map((p) => p.id)]);
  a.score = '2.5';
  a.posts[0].title = 't1b';
  await db.getRepository('Author').save(a);
  say(a.v);
  say((await db.getRepository('Author').insert([{ email: 'b@x' }, { email: 'c@x', state: 'paid' }])).identifiers);
});
await section('find', async () => {
  const A = db.getRepository('Author');
  const strip = ({ made, changed, ...r }) => r;
  say((await A.find({ relations: { posts: { labels: true } }, order: { id: 'ASC', posts: { id: 'ASC', labels: { name: 'ASC' } } } })).map(strip));
  say(
    (
      await A.findAndCount({
        where: [{ email: ILike('B%') }, { state: 'paid', gone: IsNull() }],
        order: { id: 'DESC' },
        take: 1,
        skip: 1,
        relations: ['posts'],
      })
    ).map((x) => x.length ?? x),
  );
  say((await A.find({ where: { id: In([1, 3]), score: Not(IsNull()), tags: Raw((c) => `${c} @> ARRAY['x']`) } })).map(strip));
  say(
    await A.createQueryBuilder('a')
      .leftJoin('a.posts', 'p')
      .select('a.email', 'email')
      .addSelect('COUNT(p.id)', 'n')
      .groupBy('a.email')
      .having('COUNT(p.id) >= :n', { n: 0 })
      .orderBy('a.email')
      .getRawMany(),
  );
  say(
    await A.createQueryBuilder('a')
      .leftJoinAndSelect('a.posts', 'p')
      .where('p.title LIKE :t', { t: 't%' })
      .orderBy('a.id')
      .addOrderBy('p.id')
      .take(2)
      .getMany()
      .then((l) => l.map(strip)),
  );
  say(await db.getRepository('Count').find({ order: { email: 'ASC' } }));
  say(await A.exists({ where: { email: 'b@x' } }));
  say(await A.sum('score'));
  say(await A.countBy({ id: Between(1, 2) }));
});
await section('change', async () => {
  const A = db.getRepository('Author');
  const up = await A.upsert([{ email: 'b@x', score: '7' }, { email: 'd@x' }], ['email']);
  say(up.identifiers);
  say((await A.update({ email: 'c@x' }, { flag: false, big: () => 'big + 1' })).affected);
  say((await A.increment({ id: 1 }, 'big', 5)).affected);
  say((await A.findOneBy({ id: 1 })).big);
  say(
    (await A.createQueryBuilder().update().set({ small: 3 }).where('id > :i', { i: 1 }).returning(['id', 'small']).execute()).raw.sort((x, y) => x.id - y.id),
  );
  say((await A.softDelete({ email: 'd@x' })).affected);
  say(await A.count());
  say((await A.restore({ email: 'd@x' })).affected);
  say((await A.delete({ email: 'd@x' })).affected);
  await A.remove(await A.findOneBy({ email: 'c@x' }));
  say(await A.count({ withDeleted: true }));
  const a = await A.findOne({ where: { id: 1 }, relations: { posts: true } });
  a.posts = a.posts.slice(0, 1);
  await refused(() => A.save(a));
});
await section('transactions', async () => {
  await refused(() =>
    db.transaction(async (m) => {
      await m.save('Label', { name: 'green' });
      throw new Error('back');
    }),
  );
  say(await db.getRepository('Label').count());
  await db.transaction('SERIALIZABLE', async (m) => {
    const a = await m.findOne('Author', { where: { id: 1 }, lock: { mode: 'pessimistic_write' } });
    a.score = '99';
    await m.save('Author', a);
    await m.transaction(async (n) => {
      await n.save('Label', { name: 'pink' });
    });
  });
  say((await db.getRepository('Author').findOneBy({ id: 1 })).score);
});
await section('errors', async () => {
  const A = db.getRepository('Author');
  const r = (x) => refused(x);
  await r(() => A.insert({ email: 'a@x' }));
  await r(() => A.insert({ email: null }));
  await r(() => A.insert({ email: 'z', score: '-1' }));
  await r(() => A.insert({ email: 'z', state: 'q' }));
  await r(() => db.getRepository('Post').insert({ title: 'x', author: { id: 999 } }));
});
await db.destroy();
const Later = new EntitySchema({
  name: 'Author',
  tableName: 'author',
  columns: {
    ...Author.options.columns,
    state: { type: 'enum', enum: ['new', 'paid'], default: 'paid' },
    score: { type: 'numeric', precision: 12, scale: 3, default: 0, comment: 'marks' },
    extra: { type: 'int', default: 5 },
    small: undefined,
  },
  relations: Author.options.relations,
  indices: [{ name: 'author_both', columns: ['state'], unique: false }],
});
delete Later.options.columns.small;
await section('synchronize changes', async () => {
  db = await open({ entities: [Later, Post, Label, View] });
  say((await db.driver.createSchemaBuilder().log()).upQueries.map((q) => q.query));
  await db.synchronize();
  say((await db.driver.createSchemaBuilder().log()).upQueries.map((q) => q.query));
});
await section('after', async () => {
  say((await db.getRepository('Author').find({ order: { id: 'ASC' } })).map(({ made, changed, ...r }) => r));
});
await db.destroy();
await section('migrations', async () => {
  db = await open({ entities: [Later, Post, Label, View], migrations: [First1700000000000] });
  say(await db.showMigrations());
  say((await db.runMigrations()).map((m) => m.name));
  say(await db.showMigrations());
  say(await db.query('SELECT name FROM orm.migrations'));
  const r = db.createQueryRunner();
  say((await r.getTable('orm.mig')).columns.map((c) => [c.name, c.type, c.default, c.isNullable, c.length]));
  await r.release();
  await db.undoLastMigration();
  say(await db.query('SELECT count(*) FROM orm.migrations'));
});
await section('drop', async () => {
  await db.dropDatabase();
  await db.query('DROP SCHEMA IF EXISTS orm CASCADE');
});
await db.destroy();
