// What "prisma db pull" does, by the same engine and adapter: the command itself wants
// to download an engine.
import { PrismaPg } from '@prisma/adapter-pg';
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils';
import * as engine from '@prisma/schema-engine-wasm/schema_engine_bg';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import Result from 'pg/lib/result.js';
import { section } from './matrix.mjs';

// The adapter does not know the type "char" (18), of which the engine's queries return some.
const addFields = Result.prototype.addFields;
Result.prototype.addFields = function (fields) {
  for (const f of fields) if (f.dataTypeID === 18) f.dataTypeID = 25;
  return addFields.call(this, fields);
};

globalThis.PRISMA_WASM_PANIC_REGISTRY = { set_message: (message) => console.log('FAILED', message) };
const path = createRequire(import.meta.url).resolve('@prisma/schema-engine-wasm/schema_engine_bg').replace(/js$/, 'wasm');
const instance = new WebAssembly.Instance(new WebAssembly.Module(readFileSync(path)), { './schema_engine_bg.js': engine });
engine.__wbg_set_wasm(instance.exports);
instance.exports.__wbindgen_start();

const datamodel = `datasource db {
  provider = "postgresql"
  schemas  = ["public", "shop"]
}

generator client {
  provider = "prisma-client-js"
}
`;
const connectionString = `postgresql://postgres@127.0.0.1:${process.env.PGPORT}/lake`;
const factory = bindMigrationAwareSqlAdapterFactory(new PrismaPg({ connectionString }));
const schema = { files: [{ path: 'schema.prisma', content: datamodel }] };
process.on('uncaughtException', (e) => { console.log('FAILED', e.message); process.exit(0); });
await section('pull', async () => {
  const e = await engine.SchemaEngine.new({ datamodels: [['schema.prisma', datamodel]] }, () => {}, factory);
  const r = await e.introspect({ schema, force: true, compositeTypeDepth: -1, baseDirectoryPath: '.', namespaces: ['public', 'shop'] });
  console.log(r.schema.files.map((f) => f.content).join('\n'), r.views, r.warnings);
});
process.exit(0);
