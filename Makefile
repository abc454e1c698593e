# skipprd: "make demo" shows it at work, "make test" proves it. See README.md.
SHELL := /bin/bash
BIN   := bin/skipprd
GO    ?= go
TOOL  := $(GO) tool -modfile=.ci/tools/go.mod
# The suites without pipeline words; those in sqltests/suites/pipeline need SOURCE too.
PURE   := $(addprefix sqltests/suites/,select types errors session catalog write)
# What the tests of make test had to skip.
SKIPPED := $(CURDIR)/bin/skipped
.PHONY: all build demo test setup lint unit race mutants slt kill deaths values servers clients fuzz bench clean help

all: build

help:
	@echo "make demo    build, run the server with a living shop, show live numbers"
	@echo "make test    install what the tests need (PostgreSQL, an S3 server), lint, run all tests"
	@echo "make slt ADDR=postgres://… [FILES=…] [SOURCE=…]   run .slt suites against any Postgres address"
	@echo "make kill ROUNDS=100         kill -9 under load, compare row by row"
	@echo "make deaths [ROUNDS=10] [SEED=1] [RUN=TestPowerLoss]   power loss, failing and full disks, broken links, moved clocks, dead engines"
	@echo "make values [TABLES=220] [DATABASES=5] [ROUNDS=8] [SEED=1]   drawn tables of all types with random changes, under kill -9"
	@echo "make servers [PG='16 17 18']   the tests of the source, of values and end to end against servers of these versions"
	@echo "make clients [RUN=TestClients/psycopg3]   drivers, mappers and tools: what they print, compared with PostgreSQL"
	@echo "make fuzz [SECONDS=20] [RUN=FuzzParse]   run all fuzzers in turn, or those of one name"
	@echo "make sim [SEEDS=10000] [SEED=0] [MODE=disk|store]   the simulated world: many schedules, and the deliberate bugs that it must find"
	@echo "make mutants the deliberate bugs alone, each within its number of schedules"
	@echo "make soak [HOURS=1] [SEED=0] [MODE=disk|store]      the same without an end; stops at the first seed that fails"
	@echo "make bench   run the benchmarks of docs/performance.md"

build: $(BIN)

$(BIN): FORCE
	$(GO) build -o $@ ./cmd/skipprd

FORCE:

demo: build
	$(BIN) demo

setup:
	.ci/setup

test: setup lint unit race mutants
	@cat $(SKIPPED) 2>/dev/null || true
	@echo "all tests passed"

lint:
	@out=$$($(TOOL) gofumpt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofumpt:"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	$(TOOL) staticcheck ./...

# Everything once: sqltests/suites runs our .slt files on skipprd, and those without
# pipeline words also on a real PostgreSQL, the oracle of what they expect.
unit: build
	@rm -f $(SKIPPED)
	SKIPPRD_SKIPPED=$(SKIPPED) SKIPPRD_BIN=$(CURDIR)/$(BIN) $(GO) test -timeout 45m -parallel 6 ./...

# The race detector where it sees something: not in packages that link the query
# engine, whose threads are its own.
race:
	$(GO) test -race -short -timeout 20m $$($(GO) list ./wal/... ./catalog/... ./ddl/... ./lake/merge/... ./pgwire/... ./ingest/...)

# The simulator must find every deliberate bug: a build of its own, with the tag.
mutants:
	$(GO) vet -tags mutants ./sqltests/sim ./wal/...
	$(GO) test -tags mutants -timeout 20m -v -run 'TestMutants|FindMutants' ./sqltests/sim ./wal/protocol

slt: build
	@test -n "$(ADDR)" || { echo "usage: make slt ADDR=postgres://user@host:port/db [LABELS=postgres] [FILES=dir] [SOURCE=postgres://…]"; exit 2; }
	$(BIN) slt --url "$(ADDR)" --strict $(if $(LABELS),--labels "$(LABELS)") $(if $(SOURCE),--source "$(SOURCE)") $(or $(FILES),$(PURE))

kill: build
	SKIPPRD_BIN=$(CURDIR)/$(BIN) SKIPPRD_KILL_ROUNDS=$(or $(ROUNDS),100) SKIPPRD_SEED=$(or $(SEED),1) \
		$(GO) test -count=1 -timeout 3h -v -run TestKill ./sqltests/e2e

# Every way to die; the last lines say what this machine did not allow.
deaths: build
	$(if $(RUN),,SKIPPRD_BIN=$(CURDIR)/$(BIN) SKIPPRD_KILL_ROUNDS=$(or $(ROUNDS),10) SKIPPRD_SEED=$(or $(SEED),1) \
		$(GO) test -count=1 -timeout 3h -v -run TestKill ./sqltests/e2e)
	SKIPPRD_BIN=$(CURDIR)/$(BIN) SKIPPRD_DEATH_ROUNDS=$(or $(ROUNDS),10) SKIPPRD_SEED=$(or $(SEED),1) \
		$(GO) test -count=1 -timeout 6h -v -run '$(or $(RUN),.)' ./sqltests/death

# Tables drawn from a seed, their values at the extremes of all types, compared row by row.
values: build
	SKIPPRD_BIN=$(CURDIR)/$(BIN) SKIPPRD_VALUES_TABLES=$(or $(TABLES),220) SKIPPRD_VALUES_DATABASES=$(or $(DATABASES),5) \
		SKIPPRD_VALUES_ROUNDS=$(or $(ROUNDS),8) SKIPPRD_SEED=$(or $(SEED),1) \
		$(GO) test -count=1 -timeout 3h -v ./sqltests/values

# What make test runs on the system's PostgreSQL, and on others in part, on each version.
servers: build
	.ci/servers 14 16 17 18
	SKIPPRD_BIN=$(CURDIR)/$(BIN) SKIPPRD_PG_ALL=1 $(GO) test -count=1 -timeout 1h ./sqltests/pgtest ./sqltests/servers
	for v in $(or $(PG),16 17 18); do \
		echo "PostgreSQL $$v" && SKIPPRD_PG=$$v SKIPPRD_PG_ALL=1 SKIPPRD_BIN=$(CURDIR)/$(BIN) \
			$(GO) test -count=1 -timeout 3h ./ingest/postgres/... ./sqltests/values ./sqltests/e2e || exit 1; \
	done

# What people connect with, on skipprd and on PostgreSQL: as in make test, but that a client
# that fails on PostgreSQL, too, is an error and not skipped.
clients: build
	.ci/clients
	SKIPPRD_CLIENTS=1 SKIPPRD_BIN=$(CURDIR)/$(BIN) $(GO) test -count=1 -timeout 1h -v -run '$(or $(RUN),.)' ./sqltests/clients

# Every decoder of foreign or durable bytes, each for a while.
fuzz:
	GO="$(GO)" .ci/fuzz $(or $(SECONDS),20) $(RUN)

# A build with deliberate bugs, all off unless the simulator turns one on.
bin/skipprd-mutants: FORCE
	$(GO) build -tags mutants -o $@ ./cmd/skipprd

sim: bin/skipprd-mutants
	bin/skipprd-mutants sim -n $(or $(SEEDS),10000) -seed $(or $(SEED),0) -mode $(or $(MODE),disk) -mutants

soak: build
	$(BIN) sim -hours $(or $(HOURS),1) -seed $(or $(SEED),0) -mode $(or $(MODE),disk)

bench: build
	SKIPPRD_BENCH=1 SKIPPRD_BIN=$(CURDIR)/$(BIN) $(GO) test -count=1 -timeout 3h -v -run TestBench ./sqltests/bench

clean:
	rm -rf bin
