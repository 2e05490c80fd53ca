# Everything that is done with this repository, each with the set-up that it needs (scripts/setup).
#
# One profile, release, for what is shipped, shown, tested and measured: nothing is built twice. Only tests' own code is not optimised (scripts/rustc).
# CARGO, JOBS (parallel jobs of cargo) and GROUP (for promises) may be given on the command line.

CARGO ?= cargo
JOBS ?=
GROUP ?=
# AARCH64=yes adds what needs a compiler, libraries and an emulator for another machine to `make test`.
AARCH64 ?= no
PREFIX ?= /usr/local
UNITS ?= /etc/systemd/system

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Packages that are no members of the workspace: built as their users would, each with its own lock file.
OUTSIDE := examples/photograph examples/image-resize examples/plate-detect examples/kv-counter examples/fan-out examples/distributed-sort examples/game examples/sharing examples/speculation sdk/rust sdk/grpc/rust/prepare

# What criterion measures: `cargo bench`.
PHASES := compile costs execute in_process request

# A toolchain that scripts/setup installed may be in no other place.
export PATH := $(PATH):/usr/bin:/bin

target := $(or $(CARGO_TARGET_DIR),$(CURDIR)/target)
build_flags := --release --workspace --locked $(if $(JOBS),-j $(JOBS))
# wasmtime takes minutes to build: it is built where it is asked for, by name or as one of all. Its command line takes longer: by name only.
peers_wasmtime = $(if $(filter no,$(WASMTIME)),,$(if $(PEERS),$(filter wasmtime%,$(PEERS)),yes))
peers_wasmtime_serve = $(if $(filter no,$(WASMTIME)),,$(filter wasmtime-serve,$(PEERS)))
# The same version as the crate.
wasmtime_version = $(shell sed -n '/^name = "wasmtime"$$/{n;s/^version = "\(.*\)"$$/\1/p}' Cargo.lock)
# Makes the site of `make docs`.
mdbook_version := 0.5.4
outside_flags := --locked --target-dir $(target)/outside $(if $(JOBS),-j $(JOBS))

.PHONY: help setup build programs optimised demo docs install test test-end-to-end test-others test-aarch64 test-h2spec test-connect test-boto3 test-all test-spec-all test-components test-wasi test-wasi-programs test-jsonata test-states test-applications test-conformance test-projects aarch64 bench bench-peers load soak workloads sharing sharing-simulated speculation polybench fuzz stress simulate simulate-speculation pairs mutants promises audit fmt lint clean

help: ## these lines
	@echo "make TARGET; the targets are:"
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

setup: ## install what building and testing need, if it is missing
	@scripts/setup

build: setup ## awsm and sledge, in target/release
	@$(CARGO) build --release --locked $(if $(JOBS),-j $(JOBS)) -p awsm -p sledge --bins

# These two, and what measures and tests them, which takes longer to compile.
programs: setup
	@$(CARGO) build $(build_flags) --bins

# Compiles sledge twice more.
optimised: programs ## sledge built by what it does under load, a sixth faster and more, in target/optimised; needs llvm-profdata
	@CARGO=$(CARGO) TARGET=$(target) JOBS=$(JOBS) scripts/optimise

demo: programs ## compile the example functions, serve them, check and time their replies
	@$(target)/release/demo

docs: setup ## all documents as a site, in target/docs/book; SOURCE=URL where the repository's files can be seen, for links to them
	@$(CARGO) build --release --locked $(if $(JOBS),-j $(JOBS)) -p awsm -p sledge -p sledge-book --bins
	@$(CARGO) install --locked --quiet $(if $(JOBS),-j $(JOBS)) --root $(target)/mdbook --target-dir $(target)/mdbook/build \
		--no-default-features --features search mdbook@$(mdbook_version)
	@$(target)/release/book assemble $(if $(SOURCE),--source "$(SOURCE)") $(target)/docs
	@$(target)/mdbook/bin/mdbook build $(target)/docs
	@$(target)/release/book check $(target)/docs/book
	@echo "the site is $(target)/docs/book/index.html"

install: build $(if $(OPTIMISED),optimised) ## programs and a systemd unit; PREFIX=/usr/local DESTDIR= OPTIMISED=yes
	@install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/doc/sledge $(DESTDIR)$(UNITS) $(DESTDIR)/etc/sledge
	@install -m 755 $(target)/$(if $(OPTIMISED),optimised,release)/sledge $(target)/release/awsm $(DESTDIR)$(PREFIX)/bin
	@install -m 644 README.md ARCHITECTURE.md CAVEATS.md LICENSE $(DESTDIR)$(PREFIX)/share/doc/sledge
	@set -e; for folder in docs docs/guides docs/internals docs/reference docs/tutorials; do \
		install -d $(DESTDIR)$(PREFIX)/share/doc/sledge/$$folder; \
		install -m 644 $$folder/*.md $(DESTDIR)$(PREFIX)/share/doc/sledge/$$folder; \
	done
	@install -d $(addprefix $(DESTDIR)$(PREFIX)/share/,bash-completion/completions fish/vendor_completions.d man/man1 zsh/site-functions)
	@set -e; cd $(DESTDIR)$(PREFIX)/share; for program in sledge awsm; do \
		$(target)/release/$$program completions bash > bash-completion/completions/$$program; \
		$(target)/release/$$program completions fish > fish/vendor_completions.d/$$program.fish; \
		$(target)/release/$$program completions zsh > zsh/site-functions/_$$program; \
		$(target)/release/$$program manual man/man1; \
	done
	@sed 's|@PREFIX@|$(PREFIX)|g' packaging/sledge.service > $(DESTDIR)$(UNITS)/sledge.service
	@install -m 644 packaging/sledge.socket $(DESTDIR)$(UNITS)
	@test -e $(DESTDIR)/etc/sledge/sledge.toml || install -m 644 packaging/sledge.toml $(DESTDIR)/etc/sledge
	@echo "installed in $(DESTDIR)$(PREFIX); configure $(DESTDIR)/etc/sledge/sledge.toml, then: systemctl enable --now sledge"

test-h2spec: programs ## HTTP/2 by its specification (h2spec, strict); needs Go, or h2spec in PATH
	@TARGET=$(target) scripts/test-h2spec

test-connect: programs ## gRPC, gRPC-Web and Connect by connectrpc's conformance suite; needs Go; ARGUMENTS="--run PATTERN"
	@TARGET=$(target) scripts/test-connect $(ARGUMENTS)

test-boto3: build ## the API of AWS Step Functions by AWS's SDK for Python, boto3; needs Python and PyPI; ARGUMENTS="Api.test_stop"
	@TARGET=$(target) scripts/test-boto3 $(ARGUMENTS)

# Programs and tests are built together: by themselves, programs have fewer features of some dependencies, and all that depends on these would be built twice.
test: setup ## what continuous integration runs; AARCH64=yes for test-aarch64, too
	@$(CARGO) test $(build_flags) --no-run --lib --bins --test '*'
	@$(MAKE) --jobs=2 --keep-going test-end-to-end test-others
	@$(if $(filter yes,$(AARCH64)),$(MAKE) test-aarch64)

aarch64: ## sledge for AArch64, in target/aarch64-unknown-linux-gnu/release
	@scripts/setup --aarch64
	@CARGO=$(CARGO) TARGET=$(target) JOBS=$(JOBS) scripts/aarch64 build

# Both at the same time: from end to end takes as long as all others together, and waits for servers and clocks for half of that. Tests run make, too, and it is not
# this one's jobs that they share.
test-end-to-end:
	@env --unset=MAKEFLAGS PROGRAMS_BUILT=yes $(CARGO) test $(build_flags) --test e2e

test-others:
	@env --unset=MAKEFLAGS PROGRAMS_BUILT=yes $(CARGO) test $(build_flags) --no-fail-fast
	@for package in $(OUTSIDE); do \
		echo "testing $$package"; \
		$(CARGO) test --manifest-path $$package/Cargo.toml $(outside_flags); \
	done

test-aarch64: programs ## the runtime for AArch64, in an emulator; ALL=1 for the whole specification suite
	@scripts/setup --aarch64
	@CARGO=$(CARGO) TARGET=$(target) JOBS=$(JOBS) ALL=$(ALL) scripts/aarch64 test

test-projects: programs ## new projects in Go, Python and JavaScript, their tutorials, four languages together, an application as it is developed; needs Go
	@go version >/dev/null
	@$(CARGO) test $(build_flags) --test e2e --test drill -- --ignored

test-all: test test-aarch64 test-projects ## and what takes longer: AArch64 in an emulator, all kernels at a larger size, whole drives, benchmarks once
	@CARGO=$(CARGO) TARGET=$(target) scripts/test-long

test-spec-all: programs ## the specification suite in every bounds mode and level; SPEC_MODES="guard-O2" for some
	@$(if $(SPEC_MODES),SPEC_MODES="$(SPEC_MODES)") $(CARGO) test -p sledge-tests --release --locked $(if $(JOBS),-j $(JOBS)) --test spec-all -- --nocapture

test-components: programs ## scripts of components from the folder DIR, in SPEC_MODES="guard-O0"
	@test -n "$(DIR)" || { echo "make test-components DIR=FOLDER; FOLDER holds the folder test of github.com/WebAssembly/component-model, tests/misc_testsuite/component-model of wasmtime, or both"; exit 1; }
	@COMPONENT_SUITE="$(abspath $(DIR))" $(if $(SPEC_MODES),SPEC_MODES="$(SPEC_MODES)") $(CARGO) test -p sledge-tests --release --locked $(if $(JOBS),-j $(JOBS)) --test component-suite -- --nocapture

test-wasi: programs ## the official test suite of WASI preview 1 and 0.3, from the folder SUITE; WASI_FILTER=NAME,NAME
	@test -n "$(SUITE)" || { echo "make test-wasi SUITE=DIR; DIR is github.com/WebAssembly/wasi-testsuite, branch prod/testsuite-base"; exit 1; }
	@WASI_SUITE="$(abspath $(SUITE))" $(CARGO) test -p sledge-tests --release --locked $(if $(JOBS),-j $(JOBS)) --test wasi-suite -- --nocapture

test-wasi-programs: programs ## components of wasmtime's test programs, from the folder DIR; WASI_FILTER=NAME,NAME
	@test -n "$(DIR)" || { echo "make test-wasi-programs DIR=FOLDER; FOLDER holds the files NAME.component.wasm that wasmtime's build makes of crates/test-programs"; exit 1; }
	@WASI_PROGRAMS="$(abspath $(DIR))" $(CARGO) test -p sledge-tests --release --locked $(if $(JOBS),-j $(JOBS)) --test wasi-programs -- --nocapture

test-jsonata: setup ## JSONata by jsonata-js's test suite, from the folder SUITE; JSONATA_FILTER=NAME
	@test -n "$(SUITE)" || { echo "make test-jsonata SUITE=DIR; DIR is test/test-suite of github.com/jsonata-js/jsonata"; exit 1; }
	@JSONATA_SUITE="$(abspath $(SUITE))" $(CARGO) test -p sledge-jsonata --release --locked $(if $(JOBS),-j $(JOBS)) --test suite -- --nocapture

test-states: setup ## workflows by what AWS Step Functions has answered to LocalStack's tests, from the folder SUITE; STATES_FILTER=NAME; needs Python
	@test -n "$(SUITE)" || { echo "make test-states SUITE=DIR; DIR is a checkout of github.com/localstack/localstack: scripts/fetch-states-suite DIR"; exit 1; }
	@mkdir -p $(target)
	@scripts/states-definitions "$(abspath $(SUITE))" > $(target)/states-definitions.json
	@STATES_SUITE="$(abspath $(SUITE))" STATES_DEFINITIONS="$(target)/states-definitions.json" $(if $(STATES_FILTER),STATES_FILTER="$(STATES_FILTER)") \
		$(CARGO) test -p sledge-workflow --release --locked $(if $(JOBS),-j $(JOBS)) --test states

test-applications: programs ## gRPC applications beside the servers that their sources are otherwise; needs Go and protoc
	@go version >/dev/null && protoc --version >/dev/null
	@$(CARGO) test -p sledge-tests --release --locked $(if $(JOBS),-j $(JOBS)) --test applications -- --nocapture

test-conformance: programs ## every function of WASI 0.2 and 0.3 here and in wasmtime, compared; BLESS=1 keeps what wasmtime prints
	@$(CARGO) build --release --locked $(if $(JOBS),-j $(JOBS)) -p sledge-tests --no-default-features --features wasmtime --bin reference
	@CONFORMANCE_REFERENCE="$(target)/release/reference" $(CARGO) test -p sledge-tests --release --locked $(if $(JOBS),-j $(JOBS)) --test conformance

bench: programs ## everything that is measured, in less than 20 minutes, beside the run before; BENCH=quick PARTS="load costs" FOLDER=DIR BEFORE=DIR
	@$(CARGO) bench --workspace --locked $(if $(JOBS),-j $(JOBS)) $(addprefix --bench ,$(PHASES)) --no-run --quiet
	@CARGO=$(CARGO) $(target)/release/bench run $(if $(filter quick,$(BENCH)),--quick) $(if $(FOLDER),--folder $(FOLDER)) \
		$(if $(BEFORE),--before $(BEFORE)) $(PARTS)

bench-peers: programs ## functions behind sledge, hyper, processes, wasmtime, node...; PEERS="hyper node" FUNCTIONS="ping echo" TURNS=3 WASMTIME=no NUCLIO_PROCESSOR=FILE
	@$(if $(peers_wasmtime),$(CARGO) build $(build_flags) --features sledge-benches/wasmtime --bin peer-wasmtime --bin peer-component)
	@$(if $(peers_wasmtime_serve),$(CARGO) install --locked --quiet $(if $(JOBS),-j $(JOBS)) --root $(CURDIR)/target/wasmtime-cli \
		--target-dir $(CURDIR)/target/wasmtime-cli/build wasmtime-cli@$(wasmtime_version))
	@$(target)/release/peers $(if $(PEERS),--peers "$(PEERS)") $(if $(FUNCTIONS),--functions "$(FUNCTIONS)") $(if $(TURNS),--turns $(TURNS))

polybench: programs ## the kernels beside native code; SIZE=LARGE KERNELS="gemm lu" MODES="guard software" SOURCES="c simd" ROUNDS=3 WASMTIME=yes
	@$(if $(WASMTIME),$(CARGO) build $(build_flags) --features sledge-benches/wasmtime --bin polybench-wasmtime)
	@$(target)/release/polybench $(if $(WASMTIME),--wasmtime) $(if $(SIZE),--size $(SIZE)) $(if $(KERNELS),--kernels "$(KERNELS)") \
		$(if $(MODES),--modes "$(MODES)") $(if $(SOURCES),--sources "$(SOURCES)") $(if $(ROUNDS),--rounds $(ROUNDS))

load: programs ## load after the paper on sledge, native handlers and processes; SCENARIOS="ping echo-1m" TURNS=3 CSV=FILE JSON=FILE
	@$(target)/release/load scenarios $(SCENARIOS) $(if $(TURNS),--turns $(TURNS)) $(if $(CSV),--csv $(CSV)) $(if $(JSON),--json $(JSON))

soak: programs ## everything at once for MINUTES=10, watching replies, memory and file descriptors; SEED=n
	@$(target)/release/soak --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))

workloads: programs ## a distributed sort and an online game, as in the microtasks paper; MEGABYTES=400 REPEAT=10 CLASSES=inferred FOLDER=DIR for JSON and plots
	@$(if $(FOLDER),mkdir -p $(FOLDER))
	@$(target)/release/workload sort $(if $(MEGABYTES),--megabytes $(MEGABYTES)) $(if $(REPEAT),--repeat $(REPEAT)) $(if $(CLASSES),--classes $(CLASSES)) \
		$(if $(FOLDER),--json $(FOLDER)/sort.json --plot $(FOLDER)/sort)
	@$(target)/release/workload game $(if $(CLASSES),--classes $(CLASSES)) $(if $(FOLDER),--json $(FOLDER)/game.json --plot $(FOLDER)/game)

sharing: programs ## the suite of MXFaaS beside its baseline, an hour; PROGRAMS="lr-serv,ts-left" FULL=1 for everything (most of a day), FOLDER=DIR for JSON and plots
	@$(if $(FOLDER),mkdir -p $(FOLDER))
	@$(target)/release/sharing $(if $(FULL),--full) $(if $(PROGRAMS),--programs $(PROGRAMS)) $(if $(FOLDER),--json $(FOLDER)/sharing.json --plot $(FOLDER)/sharing)

sharing-simulated: simulated = $(or $(FOLDER),$(target)/sharing-simulated)
sharing-simulated: programs ## MXFaaS's suite on 2 to 16 simulated cores, after a real run that is predicted; RUN=FILE in place of that, DELAY=5 (ms), FOLDER=DIR
	@mkdir -p $(simulated)
	@$(if $(RUN),$(target)/release/sharing-simulated predict "$(RUN)", \
		$(target)/release/sharing-simulated measure --json $(simulated)/run.json)
	@$(target)/release/sharing-simulated figures --run "$(or $(RUN),$(simulated)/run.json)" $(if $(DELAY),--delay $(DELAY)) \
		--json $(simulated)/figures.json --plot $(simulated)/figures

speculation: programs ## the suites of SpecFaaS with each level of speculation and without, less than 40 minutes; PROGRAMS="banking,ts-left" LEVELS="outputs,skips" PARTS="speed-up,hits" SECONDS=0.7 QUICK=1, FOLDER=DIR for JSON and plots
	@$(if $(FOLDER),mkdir -p $(FOLDER))
	@$(target)/release/speculation $(if $(QUICK),--quick) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(PROGRAMS),--programs $(PROGRAMS)) $(if $(LEVELS),--levels $(LEVELS)) $(if $(PARTS),--parts $(PARTS)) \
		$(if $(FOLDER),--json $(FOLDER)/speculation.json --plot $(FOLDER)/speculation)

fuzz: setup ## random modules beside an interpreter, random, streaming, hostile and damaged components, MINUTES=10 each; KINDS="modules components" ALL_MODES=1 FROM=seed
	@$(CARGO) build --release --locked -p sledge-tests --bin fuzz $(if $(JOBS),-j $(JOBS))
	@for kind in $(or $(KINDS),modules components streams hostile damaged); do \
		$(target)/release/fuzz --kind $$kind --minutes $(or $(MINUTES),10) $(if $(FROM),--from $(FROM)) \
			$(if $(ALL_MODES),--all-modes) $(if $(JOBS),--jobs $(JOBS)); \
	done

stress: setup ## real functions under random preemption at 20 us, replies compared bit for bit; MINUTES=10 SEED=n
	@$(CARGO) build --release --locked -p awsm --bin awsm $(if $(JOBS),-j $(JOBS))
	@$(CARGO) build --release --locked -p sledge-tests --bin stress $(if $(JOBS),-j $(JOBS))
	@$(target)/release/stress --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))

simulate: setup ## the pool of workers in simulated time; SEEDS=100000 FROM=0, or REPLAY=FILE for a plan that failed
	@$(if $(SEEDS),SEEDS=$(SEEDS)) $(if $(FROM),FROM=$(FROM)) $(if $(REPLAY),REPLAY="$(abspath $(REPLAY))") \
		$(CARGO) test -p sledge-schedule --release --locked $(if $(JOBS),-j $(JOBS)) --test simulation -- --nocapture

# Optimised, as other tests are not (scripts/rustc), and with the same checks: they are played for longer than they are compiled.
simulate_flags := $(foreach key,codegen-units=16 debug-assertions=true overflow-checks=true,--config profile.release.package.sledge.$(key))

simulate-speculation: setup ## executions that go ahead of themselves, alone and many at once with crashes, a failing disk and deployments, their columns, and calls that begin early or are left out, by seeds, on all cores; SEEDS=1000000 FROM=0
	@SEEDS=$(or $(SEEDS),1000000) $(if $(FROM),FROM=$(FROM)) RUSTC_WORKSPACE_WRAPPER= $(CARGO) test -p sledge --release --locked $(simulate_flags) $(if $(JOBS),-j $(JOBS)) --lib -- --nocapture --test-threads 1 \
		workflow::speculative::simulated::whatever workflow::speculative::concurrent::executions_at_the_same_time_are txn::tests::pipeline::what_is_run_ahead_is \
		txn::tests::beside::callers_whose_callees

pairs: setup ## the in-process request beside that of a commit, in alternated pairs; BASE=COMMIT
	@test -n "$(BASE)" || { echo "make pairs BASE=COMMIT; COMMIT is what this checkout is compared with"; exit 1; }
	@CARGO=$(CARGO) TARGET=$(target) scripts/pairs $(BASE)

mutants: setup ## change the code in small ways and see whether a test fails; PARTS="schedule invoke kv txn heads deploy pools"
	@CARGO=$(CARGO) TARGET=$(target) $(if $(PARTS),PARTS="$(PARTS)") scripts/mutants

promises: programs ## every numeric target beside what was measured; GROUP=first-light for one group; WASMTIME=yes for those beside wasmtime
	@$(if $(WASMTIME),$(CARGO) build $(build_flags) --features sledge-benches/wasmtime --bin peer-wasmtime-http)
	@$(target)/release/promises $(if $(GROUP),--group $(GROUP))

audit: ## known vulnerabilities, licences and sources of what we depend on
	@CARGO=$(CARGO) scripts/audit . $(OUTSIDE)

fmt: ## format all code
	@$(CARGO) fmt --all
	@for package in $(OUTSIDE); do $(CARGO) fmt --manifest-path $$package/Cargo.toml; done

lint: setup ## rustfmt and clippy; warnings are errors
	@$(CARGO) fmt --all --check
	@$(CARGO) clippy $(build_flags) --all-targets -- -D warnings
	@$(CARGO) clippy $(build_flags) --test '*' -- -D warnings # those, too, that run only where they are named
	@for package in $(OUTSIDE); do \
		$(CARGO) fmt --manifest-path $$package/Cargo.toml --check; \
		$(CARGO) clippy --manifest-path $$package/Cargo.toml $(outside_flags) --all-targets --all-features -- -D warnings; \
	done

clean: ## remove everything that was built
	@$(CARGO) clean
	@for package in $(OUTSIDE); do rm -rf $$package/target; done
