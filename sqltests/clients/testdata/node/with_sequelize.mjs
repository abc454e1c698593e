import { Sequelize, DataTypes, Op } from 'sequelize';
import { refused, say, section } from './matrix.mjs';
const db = new Sequelize(process.env.PGDATABASE, 'postgres', 'unused', {
  host: process.env.PGHOST,
  port: +process.env.PGPORT,
  dialect: 'postgres',
  logging: false,
  define: { schema: 'seq' },
});
const plain = (x) => JSON.parse(JSON.stringify(x));
await section('connect', async () => {
  await db.authenticate();
  console.log(/^15\./.test(await db.databaseVersion()));
});
const User = db.define(
  'User',
  {
    email: { type: DataTypes.STRING(80), unique: true, allowNull: false },
    state: { type: DataTypes.ENUM('new', 'paid', 'sent'), defaultValue: 'new' },
    age: { type: DataTypes.INTEGER, comment: 'in years' },
    born: DataTypes.DATEONLY,
    score: DataTypes.DECIMAL(10, 2),
    tags: DataTypes.ARRAY(DataTypes.TEXT),
    doc: DataTypes.JSONB,
    key: { type: DataTypes.UUID, defaultValue: DataTypes.UUIDV4 },
    on: DataTypes.BOOLEAN,
    f: DataTypes.DOUBLE,
    raw: DataTypes.BLOB,
  },
  { timestamps: true, paranoid: true, indexes: [{ fields: ['age'] }, { name: 'both', fields: ['state', 'age'] }], comment: 'people' },
);
const Post = db.define('Post', { title: DataTypes.STRING, body: DataTypes.TEXT, big: DataTypes.BIGINT }, { timestamps: false });
const Tag = db.define('Tag', { name: { type: DataTypes.STRING, primaryKey: true } }, { timestamps: false });
User.hasMany(Post, { as: 'posts', foreignKey: { name: 'authorId', allowNull: false }, onDelete: 'CASCADE' });
Post.belongsTo(User, { as: 'author', foreignKey: 'authorId' });
Post.belongsToMany(Tag, { through: 'PostTag', timestamps: false });
Tag.belongsToMany(Post, { through: 'PostTag', timestamps: false });
const q = db.getQueryInterface();
await section('sync', async () => {
  await db.createSchema('seq');
  await db.sync();
  await db.sync();
  await db.sync({ force: true });
});
const describe = async () => {
  for (const t of ['Users', 'Posts', 'Tags', 'PostTag']) {
    const d = await q.describeTable(t, { schema: 'seq' });
    for (const k of Object.keys(d).sort()) say([t, k, { ...d[k], special: d[k].special.sort() }]);
  }
};
await section('describe', describe);
await section('tables', async () => {
  const all = await q.showAllTables();
  say(
    all
      .filter((t) => t.schema === 'seq')
      .map((t) => t.tableName)
      .sort(),
  );
  say((await q.showAllSchemas()).filter((s) => s === 'seq'));
});
await section('indexes', async () => {
  for (const t of ['Users', 'Posts'])
    for (const i of (await q.showIndex({ tableName: t, schema: 'seq' })).sort((a, b) => (a.name < b.name ? -1 : 1))) say({ ...i, indkey: undefined });
});
await section('foreign keys', async () => {
  for (const t of ['Posts', 'PostTag'])
    say((await q.getForeignKeyReferencesForTable({ tableName: t, schema: 'seq' })).sort((a, b) => (a.columnName < b.columnName ? -1 : 1)));
});
await section('alter', async () => {
  db.define(
    'Post',
    {
      authorId: Post.rawAttributes.authorId,
      title: { type: DataTypes.STRING(40), allowNull: false, defaultValue: 'none' },
      body: DataTypes.TEXT,
      big: DataTypes.INTEGER,
      more: { type: DataTypes.SMALLINT, defaultValue: 7 },
    },
    { timestamps: false },
  );
  await db.models.Post.sync({ alter: true });
  say(await q.describeTable('Posts', { schema: 'seq' }));
});
await section('alter all', async () => {
  await db.sync({ alter: true });
  await db.sync({ alter: true });
  await describe();
});
await section('enum', async () => {
  db.define('User', { ...User.rawAttributes, state: { type: DataTypes.ENUM('new', 'paid', 'lost', 'sent'), defaultValue: 'new' } });
  await db.models.User.sync({ alter: true });
  say(
    await db.query(`SELECT enumlabel FROM pg_enum e JOIN pg_type t ON t.oid = e.enumtypid WHERE typname = 'enum_Users_state' ORDER BY enumsortorder`, {
      type: 'SELECT',
    }),
  );
});
await section('create', async () => {
  const u = await User.create(
    {
      email: 'a@x',
      age: 30,
      born: '1990-02-03',
      score: '12.50',
      tags: ['a', 'b c'],
      doc: { k: [1, null] },
      key: '5f2c6a1e-0d7b-4c3a-9a51-2f60c5d3a111',
      on: true,
      f: 1.5,
      raw: Buffer.from('00ff', 'hex'),
      createdAt: new Date(0),
      updatedAt: new Date(0),
    },
    { silent: true },
  );
  say({ ...plain(u), createdAt: 0, updatedAt: 0 });
  say(
    (
      await User.bulkCreate(
        [
          { email: 'b@x', age: 1 },
          { email: 'c@x', age: 2, tags: [] },
        ],
        { returning: true },
      )
    ).map((x) => [x.id, x.email, x.state, x.tags]),
  );
  const p = await Post.create({ title: 't', body: 'b', authorId: u.id });
  say(p);
  const t = await Tag.create({ name: 'red' });
  await p.addTag(t);
  say((await p.getTags()).map((x) => x.name));
  await Post.bulkCreate([
    { title: 'u', authorId: 2 },
    { title: 'v', authorId: 2 },
  ]);
  await u.createPost({ title: 'w' });
});
await section('find', async () => {
  say(
    (
      await User.findAll({
        include: [{ model: Post, as: 'posts' }],
        order: [
          ['id', 'ASC'],
          [{ model: Post, as: 'posts' }, 'id', 'ASC'],
        ],
      })
    ).map((u) => [u.id, u.email, u.posts.map((p) => p.title)]),
  );
  say(
    await User.findAll({
      where: { [Op.or]: [{ age: { [Op.gt]: 10 } }, { email: { [Op.iLike]: 'B%' } }], tags: { [Op.or]: [null, { [Op.contains]: ['a'] }] } },
      order: ['id'],
      attributes: ['id', 'score', 'born'],
    }),
  );
  say(await User.findAll({ where: { 'doc.k': { [Op.ne]: null } }, attributes: ['id'] }));
  say(
    await User.findAndCountAll({
      limit: 1,
      offset: 1,
      order: [['id', 'DESC']],
      attributes: ['id'],
      include: [{ model: Post, as: 'posts', attributes: ['id'] }],
      distinct: true,
    }),
  );
  say(await User.count());
  say(await User.max('age'));
  say(await User.sum('score'));
  say(await User.min('born'));
  say(
    await Post.findAll({
      attributes: ['authorId', [db.fn('COUNT', db.col('id')), 'n']],
      group: ['authorId'],
      having: db.where(db.fn('COUNT', db.col('id')), { [Op.gt]: 1 }),
      order: ['authorId'],
      raw: true,
    }),
  );
  say(
    (
      await User.findAll({
        include: [{ model: Post, as: 'posts', required: true, where: { title: { [Op.in]: ['u', 'v'] } }, include: [Tag] }],
        limit: 5,
        order: ['id'],
      })
    ).map((u) => [u.id, u.posts.length]),
  );
  say(await User.findByPk(1, { attributes: ['id', 'raw', 'f', 'on'] }));
});
await section('upsert', async () => {
  const [u, made] = await User.upsert({ email: 'b@x', age: 50 }, { fields: ['email', 'age'], conflictFields: ['email'] });
  say([u.email, u.age, made]);
  await User.create({ email: 'd@x', age: 9 });
  say((await User.findCreateFind({ where: { email: 'e@x' } })).map((x) => x.email ?? x));
  say(
    (
      await User.bulkCreate([{ email: 'd@x', age: 11 }, { email: 'f@x' }], {
        updateOnDuplicate: ['age', 'updatedAt'],
        conflictAttributes: ['email'],
        returning: true,
      })
    ).map((x) => [x.email, x.age]),
  );
  await Tag.bulkCreate([{ name: 'red' }, { name: 'blue' }], { ignoreDuplicates: true });
  say(await Tag.count());
});
await section('update', async () => {
  say((await User.update({ age: db.literal('age + 1') }, { where: { age: { [Op.gte]: 9 } }, returning: true }))[1].map((u) => [u.email, u.age]).sort());
  const u = await User.findOne({ where: { email: 'c@x' } });
  u.doc = { a: 1 };
  u.state = 'sent';
  await u.save();
  await u.reload();
  say([u.doc, u.state]);
  await u.increment('age', { by: 5 });
  await u.reload();
  say(u.age);
  await u.destroy();
  say(await User.count());
  await u.restore();
  say(await User.count());
  await u.destroy({ force: true });
  say(await User.count({ paranoid: false }));
  say(await Post.destroy({ where: { title: 'v' } }));
});
await section('transactions', async () => {
  await refused(() =>
    db.transaction(async (t) => {
      await Tag.create({ name: 'green' }, { transaction: t });
      say(await Tag.count({ transaction: t }));
      throw new Error('back');
    }),
  );
  say(await Tag.count());
  await db.transaction({ isolationLevel: 'SERIALIZABLE' }, async (t) => {
    const u = await User.findByPk(1, { transaction: t, lock: t.LOCK.UPDATE });
    u.age = 99;
    await u.save({ transaction: t });
    await db.transaction({ transaction: t }, async (s) => {
      await Tag.create({ name: 'pink' }, { transaction: s });
    });
  });
  say((await User.findByPk(1)).age);
});
await section('errors', async () => {
  await refused(() => User.create({ email: 'a@x' }));
  await refused(() => Post.create({ title: 'x', authorId: 12345 }));
  await refused(() => User.create({ age: 1 }));
  await refused(() => User.create({ email: 'z'.repeat(99) }));
  await refused(() => db.query('SELECT nosuch'));
  await refused(() => Tag.create({ name: 'red' }));
  await refused(() => User.destroy({ where: { id: 1 }, force: true }));
});
await section('query interface', async () => {
  const t = { tableName: 'made', schema: 'seq' };
  await q.createTable(
    'made',
    { id: { type: DataTypes.INTEGER, primaryKey: true, autoIncrement: true }, a: DataTypes.STRING, at: { type: DataTypes.DATE, defaultValue: db.fn('now') } },
    { schema: 'seq' },
  );
  await q.addColumn(t, 'b', { type: DataTypes.INTEGER, allowNull: false, defaultValue: 3 });
  await q.bulkInsert(t, [{ a: 'x' }, { a: 'y' }]);
  await q.renameColumn(t, 'a', 'c');
  await q.changeColumn(t, 'c', { type: DataTypes.TEXT, allowNull: false, defaultValue: "it's" });
  await q.addIndex(t, ['b'], { name: 'made_b' });
  await q.addIndex(t, ['c'], { unique: true, name: 'made_c' });
  await q.addConstraint(t, { fields: ['b'], type: 'check', where: { b: { [Op.gt]: 0 } }, name: 'pos' });
  await q.addConstraint(t, { fields: ['b', 'c'], type: 'unique', name: 'bc' });
  say(await q.describeTable(t));
  say((await q.showIndex(t)).map((i) => [i.name, i.unique, i.definition]).sort());
  say((await q.showConstraint(t)).map((c) => [c.constraintName, c.constraintType]).sort());
  await q.removeConstraint(t, 'pos');
  await q.removeIndex(t, 'made_b');
  await q.removeColumn(t, 'b');
  say(await db.query('SELECT id, c FROM seq.made ORDER BY 1', { type: 'SELECT' }));
  await q.renameTable(t, { tableName: 'other', schema: 'seq' }).catch((e) => console.log(e.message));
  await q.dropTable({ tableName: 'other', schema: 'seq' });
  await q.dropTable(t);
});
await section('drop', async () => {
  await db.drop();
  await db.dropSchema('seq');
});
await db.close();
