SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# All modules, for what is done to each. A test keeps the list whole.
MODULES := . cmd/guard-monitor examples guard/guardotel grpcguard benchmark benchmark/peers deploy/check deploy/release interop/alertmanager interop/http lock/etcdlock lock/zklock tools tools/etcd

golangci-lint := go tool -modfile=$(CURDIR)/tools/go.mod golangci-lint

# Of the verbose output, what tests across processes say and what fails.
e2e-lines := sed -uE '/^(=== |PASS$$|ok )/d; /^ *--- PASS/d; s/^ +[a-z0-9_]+_test\.go:[0-9]+: //'

.PHONY: help
help: ## list the targets
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16

.PHONY: demo
demo: ## a flash sale with a lock that gets lost; needs only Go; FLAGS=-serve
	@dir=$$(mktemp -d); trap 'rm -rf "$$dir"' EXIT; trap : INT; \
	CGO_ENABLED=0 go build -C cmd/guard-monitor -o "$$dir" ./internal/demo; "$$dir/demo" $(FLAGS) # go run fails on Ctrl-C

.PHONY: build
build: ## compile everything
	@for module in $(filter-out tools tools/etcd,$(MODULES)); do go -C $$module build ./...; done

.PHONY: test
test: ## vet and all tests against real servers, which it starts and stops
	@scripts/test

.PHONY: test-compose
test-compose: ## docker-compose.yml: does it load, is it as scripts/stack; needs no Docker
	@go -C deploy/check test -count=1 ./... # what it reads is outside of its module

.PHONY: test-all
test-all: ## make test, and the parts that need another server: some 40 minutes
	@$(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory test-postgres
	@$(MAKE) --no-print-directory test-mysql
	@$(MAKE) --no-print-directory test-mariadb11
	@$(MAKE) --no-print-directory test-galera
	@$(MAKE) --no-print-directory test-group
	@$(MAKE) --no-print-directory test-router
	@$(MAKE) --no-print-directory test-pgbouncer
	@$(MAKE) --no-print-directory test-redis
	@$(MAKE) --no-print-directory test-standby
	@$(MAKE) --no-print-directory test-semisync
	@$(MAKE) --no-print-directory test-etcd
	@$(MAKE) --no-print-directory test-zookeeper
	@$(MAKE) --no-print-directory test-engines
	@$(MAKE) --no-print-directory test-rabbitmq4
	@$(MAKE) --no-print-directory test-gorm
	@$(MAKE) --no-print-directory test-gorm ON=mysql

.PHONY: nightly
nightly: ## make test-all, and the long forms: the searches, 10 minutes of chaos on each database
	@$(MAKE) --no-print-directory test-all
	@BELAY_CHAOS=10m $(MAKE) --no-print-directory chaos
	@BELAY_CHAOS=10m $(MAKE) --no-print-directory chaos ON=mysql
	@BELAY_CHAOS=10m $(MAKE) --no-print-directory chaos ON=postgres
	@BELAY_CHAOS=3m $(MAKE) --no-print-directory beds
	@$(MAKE) --no-print-directory model
	@$(MAKE) --no-print-directory simdb
	@$(MAKE) --no-print-directory sim SIM=10m
	@$(MAKE) --no-print-directory failpoints
	@$(MAKE) --no-print-directory mutants
	@$(MAKE) --no-print-directory soak
	@$(MAKE) --no-print-directory test-monitor
	@$(MAKE) --no-print-directory interop
	@$(MAKE) --no-print-directory release-check

.PHONY: cover
cover: ## all tests, and how much of each package they reach; cover.out for go tool cover
	@rm -f cover.out; COVER=cover.out scripts/test | sed -u '/no test files/d; s/\tcoverage: .*//'
	@awk -f scripts/lib/cover.awk cover.out

.PHONY: test-mysql
test-mysql: ## the second layer and the outbox on a real MySQL, from Debian sid
	@scripts/test --on mysql -race -count=1 -timeout 20m ./dbguard/... ./internal/dbtx/... ./guard/... ./notify/outbox/... ./lock/sqllock ./once ./inbox ./internal/wild

.PHONY: test-postgres
test-postgres: ## the same on PostgreSQL, and locks that move to another engine
	@scripts/test --with postgres -race -count=1 -timeout 20m ./lock/switchlock ./dbguard/... ./internal/dbtx/... ./guard/... ./notify/outbox/... ./lock/sqllock ./once ./inbox ./internal/wild

.PHONY: test-mariadb11
test-mariadb11: ## the same on MariaDB 11, which reports changed rows by itself
	@scripts/test --on mariadb11 -race -count=1 -timeout 20m ./dbguard/... ./internal/dbtx/... ./guard/... ./notify/outbox/... ./lock/sqllock ./once ./inbox ./internal/wild

.PHONY: test-galera
test-galera: ## operations on three nodes of a Galera cluster
	@BELAY_REQUIRE_STACK=all scripts/test --with galera -race -count=1 -timeout 10m -run Galera ./guard ./internal/dbtx ./lock/sqllock

.PHONY: test-group
test-group: ## operations on three members of MySQL's group replication, which die and are elected
	@BELAY_REQUIRE_STACK=all scripts/test --with group -race -count=1 -timeout 15m -p 1 -run Group ./internal/dbtx ./guard

.PHONY: test-router
test-router: ## the same behind MySQL Router, which shares sessions
	@BELAY_REQUIRE_STACK=all scripts/test --with mysql --with router -race -count=1 -timeout 10m -run Router ./internal/dbtx

.PHONY: test-pgbouncer
test-pgbouncer: ## what becomes of a COMMIT behind a pooler in transaction mode
	@BELAY_REQUIRE_STACK=all scripts/test --with postgres --with pgbouncer -race -count=1 -timeout 10m -run 'Stranger|Pooler' -skip Router ./internal/dbtx

.PHONY: test-standby
test-standby: ## operations on a PostgreSQL whose standby is promoted
	@BELAY_REQUIRE_STACK=all scripts/test --with standby -race -count=1 -timeout 10m -run TestStandby ./internal/dbtx ./guard

.PHONY: test-etcd
test-etcd: ## the locks on three members of etcd, which are killed and paused
	@BELAY_REQUIRE_STACK=all scripts/test --with etcd -C lock/etcdlock -race -count=1 -timeout 15m ./...

.PHONY: test-semisync
test-semisync: ## operations on a MariaDB whose semi-synchronous replica is promoted
	@BELAY_REQUIRE_STACK=all scripts/test --with semisync -race -count=1 -timeout 10m -run TestSemiSync ./internal/dbtx ./guard

.PHONY: test-gorm
test-gorm: ## gorm's features with dbguard and without it, outside and in a transaction; ON=mysql or mariadb11
	@scripts/test --with $(or $(ON),postgres) -count=1 -v ./internal/gormsuite | $(e2e-lines)

.PHONY: test-rabbitmq4
test-rabbitmq4: ## the path of the alerts, and its faults, on RabbitMQ 4 from Debian sid
	@scripts/test --on rabbitmq4 -race -count=1 -timeout 20m ./notify/...
	@scripts/test --on rabbitmq4 -C cmd/guard-monitor -race -count=1 -timeout 20m ./internal/intake ./internal/alerts .

.PHONY: test-redis
test-redis: ## the locks on Valkey and on Redis 8 from Debian sid
	@BELAY_STACK=valkey BELAY_STACK_PORT=18000 scripts/test --redis valkey -race -count=1 -timeout 20m ./lock/redislock
	@BELAY_STACK=redis8 BELAY_STACK_PORT=18000 scripts/test --redis redis8 -race -count=1 -timeout 20m ./lock/redislock

.PHONY: test-engines
test-engines: ## the contract and the histories of every lock engine, on real servers
	@scripts/test-engines

.PHONY: test-zookeeper
test-zookeeper: ## the locks on three nodes of ZooKeeper
	@BELAY_REQUIRE_STACK=all scripts/test --with zookeeper -C lock/zklock -race -count=1 -timeout 20m ./...

.PHONY: test-alerts
test-alerts: ## the path of the alerts through all faults, over RabbitMQ and over HTTP
	@scripts/test -C cmd/guard-monitor -count=1 -v ./internal/alerts | $(e2e-lines)

.PHONY: e2e
e2e: ## the end-to-end cases: real servers, real processes, real faults
	@scripts/test -C cmd/guard-monitor -count=1 -v ./internal/e2e | $(e2e-lines)

.PHONY: test-monitor
test-monitor: ## guard-monitor, with real servers, Prometheus and Alertmanager
	@scripts/test-monitor

.PHONY: chaos
chaos: ## both layers while locks, masters, databases, processes and connections fail; BELAY_CHAOS=5m BELAY_CHAOS_SEED=7 ON=mysql or postgres
	@BELAY_CHAOS=$${BELAY_CHAOS:-2m} BELAY_CHAOS_ON=$(or $(ON),mariadb) scripts/test $(if $(filter-out mariadb,$(ON)),--with $(ON)) \
		-count=1 -v -timeout 60m -run TestChaos ./internal/chaos | $(e2e-lines)

# Databases of several servers; see internal/chaos/bed_test.go.
BEDS ?= galera behind semisync standby pgbouncer group multi

.PHONY: beds
beds: ## chaos on databases of several servers, one after the other, and a table; BEDS=galera BELAY_CHAOS=10m
	@out=$$(mktemp); trap 'rm -f "$$out"' EXIT; status=0; \
	for bed in $(BEDS); do \
		BELAY_CHAOS=$${BELAY_CHAOS:-1m} BELAY_CHAOS_ON=$$bed scripts/test -count=1 -v -timeout 60m -run 'TestChaos$$' ./internal/chaos | \
			$(e2e-lines) | tee -a "$$out" || status=1; \
	done; \
	grep -m 1 '^| database' "$$out" && echo '|---|---|---|---|---|---|---|' && grep '^| ' "$$out" | grep -v '^| database'; \
	exit $$status

.PHONY: soak
soak: ## the same with few faults, and whether anything grows; SOAK=2h ON=mysql or postgres
	@BELAY_SOAK=$(or $(SOAK),2h) BELAY_CHAOS_ON=$(or $(ON),mariadb) scripts/test $(if $(filter-out mariadb,$(ON)),--with $(ON)) \
		-count=1 -v -timeout 0 -run TestSoak ./internal/chaos | $(e2e-lines)

.PHONY: failpoints
failpoints: on = $(or $(ON),$(if $(filter ci,$(BELAY_FAILPOINTS)),mariadb,mariadb mysql postgres))
failpoints: ## a process dies at every step, on three databases; ON=mysql BELAY_FAILPOINTS=ci or dbtx/committed
	@BELAY_FAILPOINTS_ON=$(shell echo $(on) | tr ' ' ,) scripts/test $(addprefix --with ,$(filter-out mariadb,$(on))) \
		-C cmd/guard-monitor -tags failpoints -count=1 -v -timeout 30m -parallel 12 -run TestFailpoints ./internal/failpoints | $(e2e-lines)

.PHONY: model
model: ## every state of the protocol, made small, in all orders: a minute
	@BELAY_MODEL=full go test -count=1 -v -run '^TestModel$$' ./internal/model ./lock/switchlock | $(e2e-lines)

.PHONY: sim
sim: ## lock, guard and outbox on simulated servers, schedule by schedule; SIM=5m, SEED=1 repeats one
	@BELAY_SIM=$(or $(SIM),1m) BELAY_SIM_FROM=$${BELAY_SIM_FROM:-$$(date +%s)00000} BELAY_SIM_SEED=$(SEED) \
		go test -count=1 -timeout 0 -v -run '^TestSim$$' ./internal/sim | $(e2e-lines)

.PHONY: mutants
mutants: ## break Belay in some 270 named ways, one at a time: which test notices; MUTANTS=name,name or a count
	@BELAY_MUTANTS=$(or $(MUTANTS),all) scripts/test --with postgres --with standby --with semisync -count=1 -v -timeout 3h -run 'TestMutants$$' ./internal/mutants | $(e2e-lines)

.PHONY: simdb
simdb: ## random schedules on the simulated database and on MariaDB and PostgreSQL; BELAY_SIMDB=10000 of them
	@BELAY_SIMDB=$${BELAY_SIMDB:-10000} scripts/test --with postgres -count=1 -v -timeout 30m -run TestAsRealServers ./internal/sim/simdb | $(e2e-lines)

.PHONY: test-web
test-web: ## guard-monitor's pages, in a real Chromium; BELAY_WEB_SHOTS=dir keeps pictures
	@scripts/test-web

.PHONY: interop
interop: ## Belay and Redisson on the same locks; needs a JDK and Maven
	@BELAY_REQUIRE_INTEROP=1 scripts/test -count=1 -v ./interop/redisson | $(e2e-lines)

.PHONY: bench-lock
bench-lock: ## other lock libraries side by side, and then all lock engines, some 15 minutes; JSON=file
	@benchmark/peers/run lock $(FLAGS)
	@JSON= benchmark/peers/run engines

.PHONY: bench-engines
bench-engines: ## all lock engines side by side: cycles a second, requests and fsyncs of a cycle; JSON=file
	@benchmark/peers/run engines $(FLAGS)

.PHONY: bench-renew
bench-renew: ## what 100,000 held locks cost; JSON=file
	@benchmark/peers/run renew $(FLAGS)

.PHONY: table1
table1: ## the paper's experiment on real servers; ROWS=10000000 JSON=file HTML=file
	@benchmark/run table1

.PHONY: table1-jmeter
table1-jmeter: ## the same with JMeter as the crowd
	@benchmark/run table1-jmeter

.PHONY: sustained
sustained: ## curves under a constant load, some 15 minutes; STEP=30s: 90
	@benchmark/run sustained

.PHONY: cost
cost: ## what an operation costs, and how that grows from ROWS=100000,10000000
	@benchmark/run cost

.PHONY: bench-guard
bench-guard: ## guard.Do beside what does the same without it, some 10 minutes; JSON=file
	@benchmark/run guard

.PHONY: lint
lint: ## are the modules tidy; golangci-lint, built from tools/go.mod (minutes the first time)
	@for module in $(MODULES); do go -C $$module mod tidy -diff; done
	@root=$$PWD; for module in $(filter-out tools tools/etcd interop/alertmanager,$(MODULES)); do \
		(cd $$module && $(golangci-lint) run --config $$root/.golangci.yaml ./...); done
	@if command -v shellcheck >/dev/null; then shellcheck -x scripts/stack scripts/test scripts/test-monitor scripts/test-web scripts/need scripts/release scripts/release-check scripts/vuln .ci/run benchmark/peers/run benchmark/run deploy/compose/create-cluster.sh; fi

.PHONY: vuln
vuln: ## are the dependencies those of go.sum, and is a vulnerability known; asks vuln.go.dev
	@scripts/vuln

.PHONY: release-check
release-check: ## can the modules be released: in a copy, from a module proxy in a folder, offline
	@scripts/release-check

.PHONY: release
release: ## binaries, checksums, lists of parts and an image of guard-monitor in dist; VERSION=v0.1.0 TARGETS=linux/amd64
	@scripts/release $(VERSION)

.PHONY: stack-up
stack-up: ## start Redis Cluster, MariaDB and RabbitMQ on 127.0.0.1
	@scripts/stack up

.PHONY: stack-down
stack-down: ## stop them and remove their data
	@scripts/stack down
