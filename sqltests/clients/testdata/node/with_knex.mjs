import knexf from 'knex';
import { refused, say, section } from './matrix.mjs';
class Source {
  async getMigrations() {
    return ['001_first', '002_second'];
  }
  getMigrationName(m) {
    return m;
  }
  getMigration(m) {
    return {
      '001_first': {
        up: async (k) => {
          await k.schema.withSchema('kn').createTable('users', (t) => {
            t.increments();
            t.string('email', 80).notNullable().unique();
            t.enu('state', ['new', 'paid'], { useNative: true, enumName: 'state', schemaName: 'kn' }).defaultTo('new');
            t.enu('kind', ['a', 'b']).defaultTo('a');
            t.decimal('score', 10, 2).unsigned();
            t.specificType('tags', 'text[]');
            t.jsonb('doc').defaultTo('{}');
            t.boolean('flag').notNullable().defaultTo(true);
            t.uuid('key');
            t.date('born');
            t.timestamps(true, true);
            t.index(['state', 'flag'], 'users_both');
            t.comment('people');
            t.bigInteger('big').comment('large');
            t.binary('raw');
            t.float('f');
            t.double('d');
            t.text('body');
            t.smallint('s');
            t.time('at');
          });
          await k.schema.withSchema('kn').createTable('posts', (t) => {
            t.bigIncrements('id');
            t.integer('author').notNullable().references('id').inTable('kn.users').onDelete('CASCADE').index();
            t.string('title');
            t.unique(['author', 'title']);
          });
        },
        down: async (k) => {
          await k.schema.withSchema('kn').dropTable('posts').dropTable('users');
          await k.raw('DROP TYPE kn.state');
        },
      },
      '002_second': {
        up: async (k) => {
          await k.schema.withSchema('kn').alterTable('users', (t) => {
            t.string('nick', 20).defaultTo('none');
            t.renameColumn('body', 'text');
            t.string('email', 120).notNullable().alter();
            t.index('nick');
            t.setNullable('flag');
            t.check('big >= 0', {}, 'pos');
          });
        },
        down: async (k) => {
          await k.schema.withSchema('kn').alterTable('users', (t) => {
            t.dropColumn('nick');
            t.renameColumn('text', 'body');
            t.dropChecks('pos');
          });
        },
      },
    }[m];
  }
}
const k = knexf({
  client: 'pg',
  connection: {},
  searchPath: ['kn', 'public'],
  pool: { min: 0, max: 4 },
  migrations: { migrationSource: new Source(), schemaName: 'kn' },
});
await section('schema', async () => {
  await k.schema.createSchemaIfNotExists('kn');
  await k.schema.createSchemaIfNotExists('kn');
});
await section('migrate', async () => {
  say(await k.migrate.list());
  say(await k.migrate.latest());
  say(await k.migrate.currentVersion());
  say(await k.migrate.latest());
  say(await k('kn.knex_migrations').select('id', 'name', 'batch').orderBy('id'));
  say(await k('kn.knex_migrations_lock'));
});
await section('rollback', async () => {
  say(await k.migrate.down());
  say(await k.migrate.up());
  say(await k.migrate.rollback(undefined, true));
  say(await k.migrate.latest());
  await refused(() => k.migrate.forceFreeMigrationsLock());
});
await section('columns', async () => {
  say(await k('users').withSchema('kn').columnInfo());
  say(await k.schema.withSchema('kn').hasTable('users'));
  say(await k.schema.withSchema('kn').hasColumn('users', 'nick'));
  say(await k.schema.hasTable('nosuch'));
});
await section('insert', async () => {
  say(
    await k('users')
      .insert([
        {
          email: 'a@x',
          score: 1.5,
          tags: ['a', 'b c'],
          doc: { k: 1 },
          big: '9007199254740993',
          raw: Buffer.from('0aff', 'hex'),
          born: '2000-01-02',
          at: '12:00',
        },
        { email: 'b@x', state: 'paid' },
      ])
      .returning(['id', 'email', 'state', 'kind', 'score', 'tags', 'doc', 'big', 'raw', 'at']),
  );
  say(
    await k('posts').insert(
      [
        { author: 1, title: 'x' },
        { author: 1, title: 'y' },
        { author: 2, title: 'z' },
      ],
      'id',
    ),
  );
  say(
    await k
      .batchInsert(
        'posts',
        [
          { author: 2, title: 'q' },
          { author: 2, title: 'r' },
        ],
        1,
      )
      .returning('id'),
  );
});
await section('upsert', async () => {
  say(await k('users').insert({ email: 'a@x', nick: 'n' }).onConflict('email').merge(['nick']).returning(['id', 'nick']));
  say(await k('users').insert({ email: 'a@x' }).onConflict('email').ignore().returning('id'));
  say(
    await k('users')
      .insert({ email: 'b@x', f: 1 })
      .onConflict('email')
      .merge({ f: k.raw('excluded.f + 1') })
      .where('users.id', '>', 1)
      .returning('f'),
  );
});
await section('select', async () => {
  say(
    await k('users as u')
      .join('posts as p', 'p.author', 'u.id')
      .select('u.email')
      .count('p.id as n')
      .groupBy('u.email')
      .havingRaw('count(*) > ?', [1])
      .orderBy('u.email'),
  );
  say(
    await k('users')
      .where({ flag: true })
      .whereIn('id', [1, 2, 3])
      .whereNot('email', 'like', 'z%')
      .andWhere((b) => b.whereNull('key').orWhereBetween('score', [0, 5]))
      .select('id')
      .orderBy('id', 'desc')
      .limit(1)
      .offset(1),
  );
  say(await k('users').whereJsonPath('doc', '$.k', '=', 1).select('id'));
  say(await k('users').whereJsonSupersetOf('doc', { k: 1 }).select('id'));
  say(await k('users').jsonExtract('doc', '$.k', 'kk').orderBy('id'));
  say((await k('users').first('id').where('id', 99)) ?? null);
  say(await k.with('w', k('posts').select('author').count('* as n').groupBy('author')).select('*').from('w').orderBy('author'));
  say(
    await k('posts')
      .select('id')
      .rowNumber('rn', (w) => w.partitionBy('author').orderBy('id', 'desc'))
      .orderBy('id'),
  );
  say(await k('users').distinctOn('state').select('state', 'id').orderBy(['state', 'id']));
  say(await k('users').whereExists(k('posts').whereRaw('posts.author = users.id')).pluck('email'));
  say(await k.union([k('users').select('id'), k('posts').select('author as id')]).orderBy('id'));
  say(await k('users').sum({ s: 'score' }).max('id as m').first());
  say(await k('users').whereILike('email', 'A@%').select('id'));
  say(await k.raw('select ?? from users where id = ?', ['email', 1]).then((r) => r.rows));
  say(await k('posts').select(k.ref('title').as('t')).orderByRaw('title desc nulls last').limit(2));
});
await section('update', async () => {
  say(
    await k('users')
      .where('id', 1)
      .update({ score: k.raw('score * 2'), doc: k.jsonSet('doc', '$.z', '5') }, ['score', 'doc']),
  );
  say(await k('users').increment('big', 2).decrement('f', 1));
  say(await k('posts').where({ title: 'r' }).del(['id']));
  say(await k('posts').whereIn('author', k('users').select('id').where('state', 'paid')).del());
});
await section('transactions', async () => {
  await refused(() =>
    k.transaction(async (t) => {
      await t('posts').insert({ author: 1, title: 'gone' });
      throw new Error('back');
    }),
  );
  await k.transaction(
    async (t) => {
      const r = await t('users').forUpdate().where('id', 1).first('id');
      say(r);
      await t.transaction(async (s) => {
        await s('posts').insert({ author: 1, title: 'kept' });
      });
      await t
        .transaction(async (s) => {
          await s('posts').insert({ author: 1, title: 'lost' });
          await s.rollback();
        })
        .catch((e) => console.log(e.message));
    },
    { isolationLevel: 'repeatable read' },
  );
  say(await k('posts').pluck('title'));
  const t = await k.transaction(null, { readOnly: true });
  await refused(() => t('posts').del());
  await t.rollback();
  say(await k('users').forUpdate().skipLocked().select('id').orderBy('id').limit(1));
});
await section('errors', async () => {
  await refused(() => k('users').insert({ email: 'a@x' }));
  await refused(() => k('users').insert({ email: 'q', big: -1 }));
  await refused(() => k('users').insert({ email: 'q', kind: 'z' }));
  await refused(() => k('users').insert({ email: 'q', state: 'z' }));
  await refused(() => k('posts').insert({ author: 99 }));
  await refused(() => k('nosuch'));
  await refused(() => k('users').select('nosuch'));
  await refused(() => k('users').where('id', 1).timeout(50, { cancel: true }).select(k.raw('pg_sleep(5)')));
});
await section('schema builder', async () => {
  const s = () => k.schema.withSchema('kn');
  await s().createTableLike('copy', 'users', (t) => {
    t.string('more');
  });
  say(Object.keys(await k('copy').withSchema('kn').columnInfo()));
  await s().renameTable('copy', 'copied');
  await s().createView('v', (v) => {
    v.columns(['email']);
    v.as(k('users').select('email'));
  });
  say(await k('kn.v').orderBy('email'));
  await s().createViewOrReplace('v', (v) => {
    v.as(k('users').select('email'));
  });
  await s().dropViewIfExists('v');
  await s().alterTable('copied', (t) => {
    t.foreign('id', 'fk').references('id').inTable('kn.users').deferrable('deferred');
    t.unique(['email'], { indexName: 'u', predicate: k.whereNotNull('email') });
    t.timestamp('z', { precision: 3 }).defaultTo(k.fn.now(3));
    t.dropForeign([], 'fk');
  });
  await s().dropTableIfExists('copied');
  await s().dropTableIfExists('copied');
});
await section('drop', async () => {
  await k.migrate.rollback(undefined, true);
  await k.schema.dropSchema('kn', true);
});
await k.destroy();
