SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# All modules, for what is done to each. A test keeps the list whole.
MODULES := . cmd/guard-monitor examples guard/guardotel guard/pgxguard grpcguard benchmark benchmark/peers deploy/check deploy/release internal/chaos interop/alertmanager interop/drivers interop/fronts interop/http interop/redsync lock/etcdlock lock/zklock tools tools/etcd

golangci-lint := go tool -modfile=$(CURDIR)/tools/go.mod golangci-lint

# Of the verbose output, what tests across processes say and what fails.
said := awk -f scripts/lib/said.awk

.PHONY: help
help: ## list the targets
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16

.PHONY: demo
demo: ## a flash sale with a lock that gets lost; needs only Go; FLAGS=-serve
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; trap : INT; \
	CGO_ENABLED=0 go build -C cmd/guard-monitor -o "$$dir" ./internal/demo; "$$dir/demo" $(FLAGS) # go run fails on Ctrl-C

.PHONY: site
site: ## guard-monitor's pages about the demo as files in site, for any web server: an incident, its timeline, the alert, in both languages
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; rm -rf site; \
	CGO_ENABLED=0 go build -C cmd/guard-monitor -o "$$dir" . ./internal/demo; \
	"$$dir/demo" -record "$$dir/run.db" | tail -1; "$$dir/guard-monitor" export -db "$$dir/run.db" site

.PHONY: test
test: ## vet and all tests against real servers, which it starts and stops; a part: ON=galera PKG=./guard/promises RUN=TestDo, N=20 times beside busy loops
	@ON='$(ON)' PKG='$(PKG)' RUN='$(RUN)' N='$(N)' scripts/part

.PHONY: test-all
test-all: ## make test, and the parts that need another server: some 40 minutes
	@scripts/part
	@for on in postgres postgres17 postgres18 mysql mysql80 mariadb11 galera group router pgbouncer standby semisync etcd zookeeper valkey redis8 rabbitmq4 engines fronts; do \
		ON=$$on scripts/part; done
	@for on in postgres mysql; do ON=$$on PKG=./internal/gormsuite scripts/part; done

.PHONY: servers
servers: ## the suites of the databases on each server, and a table of the counts; ON="mysql80 galera" SHORT=1
	@ON='$(ON)' SHORT='$(SHORT)' scripts/servers

.PHONY: nightly
nightly: ## make test-all, and the long forms: the searches, 10 minutes of chaos on each database
	@$(MAKE) --no-print-directory test-all
	@BELAY_CHAOS=10m scripts/chaos mariadb mysql mysql80 postgres
	@BELAY_CHAOS=3m scripts/chaos $(beds)
	@BELAY_SOAK=2h scripts/chaos
	@$(MAKE) --no-print-directory e2e
	@$(MAKE) --no-print-directory model
	@PKG=./internal/model scripts/part
	@BELAY_SIMDB=10000 ON=postgres PKG=./internal/sim/simdb RUN=TestAsRealServers scripts/part
	@BELAY_SQL_ORACLE=40000 ON=postgres PKG=./guard/promises RUN=TestSQLOracle scripts/part
	@BELAY_MEET=15 ON=postgres PKG=./guard/promises RUN='TestMeet$$' scripts/part
	@BELAY_CREWS=5000 PKG=./guard/promises RUN=TestCombineIsLikeOneByOne scripts/part
	@$(MAKE) --no-print-directory sim SIM=10m
	@$(MAKE) --no-print-directory failpoints
	@$(MAKE) --no-print-directory mutants
	@PKG=./cmd/guard-monitor/... scripts/part
	@$(MAKE) --no-print-directory interop
	@PKG=./interop/drivers/ncruces scripts/part
	@$(MAKE) --no-print-directory release-check

.PHONY: walks
walks: ## start as each kind of new user does, with the lines of the README: lines, seconds, result
	@scripts/test --with postgres -count=1 -v -run 'TestWalks$$' ./internal/docs | $(said)

.PHONY: cover
cover: ## all tests, and how much of each package they reach; cover.out for go tool cover
	@rm -f cover.out; COVER=cover.out scripts/test | sed -u '/no test files/d; s/\tcoverage: .*//'
	@awk -f scripts/lib/cover.awk cover.out

.PHONY: e2e
e2e: ## the end-to-end cases: real servers, real processes, real faults; 10,000 sales through two services, 2,000 payments: BELAY_E2E_SEED=7 repeats one
	@scripts/test -C cmd/guard-monitor -count=1 -v ./internal/e2e | $(said)
	@BELAY_E2E=$(or $(BELAY_E2E),10000) scripts/test --with postgres -C examples -count=1 -v -timeout 1h -run TestTwoServices ./internal/e2e | $(said)
	@BELAY_PAYMENTS=$(or $(BELAY_PAYMENTS),2000) scripts/test --with postgres -C examples -count=1 -v -timeout 1h -run TestPayments ./internal/payments | $(said)

# Databases of several servers; see internal/chaos/bed_test.go.
beds := galera behind semisync standby pgbouncer group multi

.PHONY: chaos
chaos: ## both layers while locks, databases, processes and connections fail; ON="mysql beds" BELAY_CHAOS=5m BELAY_CHAOS_SEED=7 BELAY_SOAK=2h; beside an older build, and its alerts: BELAY_CHAOS_OLDER=COMMIT
	@scripts/chaos $(patsubst beds,$(beds),$(ON))

.PHONY: failpoints
failpoints: on = $(or $(ON),$(if $(filter ci,$(BELAY_FAILPOINTS)),mariadb,mariadb mysql postgres))
failpoints: ## a process dies at every step, on three databases; ON=mysql BELAY_FAILPOINTS=ci or dbtx/committed
	@BELAY_FAILPOINTS_ON=$(shell echo $(on) | tr ' ' ,) scripts/test $(addprefix --with ,$(filter-out mariadb,$(on))) \
		-C cmd/guard-monitor -tags failpoints -count=1 -v -timeout 30m -parallel 12 -run TestFailpoints ./internal/failpoints | $(said)

.PHONY: model
model: ## every state of the protocol, and of one call in its middle, made small, in all orders: a minute
	@BELAY_MODEL=full go test -count=1 -v -timeout 1h -run '^TestModel$$' ./lock/switchlock ./internal/model | $(said)

.PHONY: sim
sim: ## lock, guard and outbox on simulated servers, schedule by schedule, some through the model; SIM=5m, SEED=1 repeats one, BELAY_SIM_FROM=1 BELAY_SIM_TO=12000
	@BELAY_SIM=$(or $(SIM),1m) BELAY_SIM_FROM=$${BELAY_SIM_FROM:-$$(date +%s)00000} BELAY_SIM_SEED=$(SEED) \
		go test -count=1 -timeout 0 -v -run '^Test(Sim|Traces|CallTraces)$$' ./internal/sim | $(said)

.PHONY: mutants
mutants: ## break Belay in some 500 named ways, one at a time: which test notices; MUTANTS=name,name or a count
	@BELAY_MUTANTS=$(or $(MUTANTS),all) scripts/test $(if $(filter ci,$(MUTANTS)),,--with postgres --with pgbouncer --with standby --with semisync --with etcd --with zookeeper) -count=1 -v -timeout 3h -run 'TestMutants$$' ./internal/mutants | $(said)

.PHONY: interop
interop: ## Belay and Redisson on the same locks; needs a JDK and Maven
	@BELAY_REQUIRE_INTEROP=1 scripts/test -count=1 -v ./interop/redisson | $(said)

.PHONY: bench-lock
bench-lock: ## other lock libraries side by side, and then all lock engines, some 15 minutes; JSON=file
	@benchmark/peers/run lock $(FLAGS)
	@JSON= benchmark/peers/run engines

.PHONY: table1
table1: ## the paper's experiment on real servers; JMETER=1 with JMeter as the crowd; ROWS=10000000 JSON=file HTML=file
	@benchmark/run $(if $(JMETER),table1-jmeter,table1)

.PHONY: cost
cost: ## what an operation sends and allocates, on each database, held to ceilings; WRITE=1 new ones; ROWS=100000,10000000 also how that grows
	@BELAY_COST=$(if $(WRITE),write,measure) scripts/test --with mysql --with mariadb11 --with postgres -count=1 -v ./internal/cost | $(said)
	@$(if $(ROWS),ROWS='$(ROWS)' benchmark/run cost)

.PHONY: bench-guard
bench-guard: ## guard.Do beside what does the same without it, some 10 minutes; JSON=file
	@benchmark/run guard

.PHONY: lint
lint: ## are the modules tidy; golangci-lint, built from tools/go.mod (minutes the first time)
	@for module in $(MODULES); do go -C $$module mod tidy -diff; done
	@root=$$PWD; for module in $(filter-out tools tools/etcd interop/alertmanager,$(MODULES)); do \
		(cd $$module && $(golangci-lint) run --config $$root/.golangci.yaml ./...); done
	@if command -v shellcheck >/dev/null; then shellcheck -x scripts/stack scripts/test scripts/part scripts/servers scripts/chaos scripts/test-monitor scripts/test-web scripts/need scripts/release scripts/release-check scripts/release-files scripts/release-tags scripts/vuln .ci/run benchmark/peers/run benchmark/run deploy/compose/create-cluster.sh; fi

.PHONY: vuln
vuln: ## are the dependencies those of go.sum, and is a vulnerability known; asks vuln.go.dev
	@scripts/vuln

.PHONY: release-check
release-check: ## can the modules be released: in a copy, with its tags, offline; VERSION=v0.1.0 that version, as it is committed
	@scripts/release-check $(VERSION)

.PHONY: release
release: ## binaries, checksums, lists of parts and an image of guard-monitor in dist; VERSION=v0.1.0 TARGETS=linux/amd64
	@scripts/release $(VERSION)

.PHONY: stack-up
stack-up: ## start Redis Cluster, MariaDB and RabbitMQ on 127.0.0.1
	@scripts/stack up

.PHONY: stack-down
stack-down: ## stop them and remove their data
	@scripts/stack down
