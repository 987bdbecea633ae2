SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

golangci-lint := go tool -modfile=tools/go.mod golangci-lint

# Of the verbose output, what tests across processes say and what fails.
e2e-lines := sed -uE '/^(=== |PASS$$|ok )/d; /^ *--- PASS/d; s/^ +[a-z0-9_]+_test\.go:[0-9]+: //'

.PHONY: help
help: ## list the targets
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

.PHONY: demo
demo: ## a flash sale with a lock that gets lost; needs only Go
	@CGO_ENABLED=0 go run ./examples/demo

.PHONY: build
build: ## compile everything
	go build ./...

.PHONY: test
test: ## vet and all tests against real servers, which it starts and stops
	@scripts/test

.PHONY: e2e
e2e: ## the end-to-end cases: real servers, real processes, real faults
	@scripts/test -count=1 -v ./internal/e2e | $(e2e-lines)

.PHONY: interop
interop: ## Belay and Redisson on the same locks; needs a JDK and Maven
	@BELAY_REQUIRE_INTEROP=1 scripts/test -count=1 -v ./interop/redisson | $(e2e-lines)

.PHONY: bench-lock
bench-lock: ## other lock libraries side by side, some 10 minutes; JSON=file
	@benchmark/peers/run lock $(FLAGS)

.PHONY: bench-renew
bench-renew: ## what 100,000 held locks cost; JSON=file
	@benchmark/peers/run renew $(FLAGS)

.PHONY: lint
lint: ## golangci-lint, built from tools/go.mod (minutes the first time)
	@$(golangci-lint) run ./...
	@if command -v shellcheck >/dev/null; then shellcheck -x scripts/stack scripts/test .ci/run benchmark/peers/run; fi

.PHONY: stack-up
stack-up: ## start Redis Cluster, MariaDB and RabbitMQ on 127.0.0.1
	@scripts/stack up

.PHONY: stack-down
stack-down: ## stop them and remove their data
	@scripts/stack down
