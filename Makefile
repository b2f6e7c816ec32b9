# SPDX-License-Identifier: Apache-2.0
#
# Every target sets up what it needs. CI (.ci/run) runs `make test` and the rest of `make test-all`, and nothing that cannot
# be run here.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

LINT := hack/tools/bin/golangci-lint
ACTIONLINT := hack/releasetools/bin/actionlint
GOTESTSUM := hack/tools/bin/gotestsum
KO := hack/image/bin/ko
HUGO := hack/hugo/bin/hugo
# Where images go, on which they are based, and what they are called: TAGS=v0.1.0,v0.152.0,v1.4.0 adds Landscaper's versions.
REGISTRY ?= ghcr.io/deployerkit
BASE ?= gcr.io/distroless/static-debian12:nonroot
PLATFORMS ?= linux/amd64,linux/arm64
# The charts of a version install the images with that tag.
VERSION ?= v0.1.0
TAGS ?= $(VERSION)
# The platforms of the program deployerkit, such as "linux/amd64 darwin/arm64", or nothing for all of them.
SYSTEMS ?=
DIR ?= .cache/release
# The private key that signs a release, as `cosign generate-key-pair` writes it; COSIGN_PASSWORD is its password.
KEY ?= cosign.key
BUILDER ?= $(SOURCE)/blob/main/Makefile
SOURCE := https://github.com/deployerkit/deployerkit
# Benchmarks against other tools: a module of its own, for what those depend on.
PEERS := test/envtest/bench/peers
# Charts and images: a module of its own, for Helm.
CHARTS := test/envtest/charts
# The Helm deployer: a module of its own, for Helm.
HELM := deployers/helm
# The web page in a browser: a module of its own, for what controls the browser.
PAGE := test/ui
# The dashboard and the alerts: a module of its own, for Prometheus.
MONITORING := test/monitoring
# The site of the guides: a module of its own, for what controls the browser.
SITE := docs/site
BENCH ?= .
FUZZ ?= .
FUZZTIME ?= 30s
SEED ?= 0
MUTANTS ?= .
# The events of the last test runs, from which `make evidence` learns which tests ran and passed. The events of `make test`
# are evidence only if it runs all specs.
EVENTS := $(CURDIR)/.cache/events
RUN_TESTS := $(CURDIR)/$(GOTESTSUM) --format pkgname-and-test-fails --format-hide-empty-pkg
# RECORD_TESTS also writes the events to a new file. Ginkgo writes the results of its specs next to the tests.
RECORD_TESTS = mkdir -p $(EVENTS) && $(RUN_TESTS) --jsonfile $(EVENTS)/$@-$$(date +%s%N).json --
GINKGO_REPORT := -ginkgo.json-report=ginkgo.json

# A package whose tests use Ginkgo or the control plane is a suite; all others are units.
LIST_IMPORTS = go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./...
LIST_GINKGO = $(LIST_IMPORTS) | grep -F onsi/ginkgo | cut -d' ' -f1
# These tests use the control plane, but not Ginkgo.
LIST_OTHERS = $(LIST_IMPORTS) | grep -vF onsi/ginkgo | grep 'deployerkit/controlplane[] ]' | cut -d' ' -f1
LIST_UNITS = suites=$$($(LIST_GINKGO); $(LIST_OTHERS)); go list ./... | grep -vxF "$$suites"
# UNITS=./patch or SUITES=./test/envtest/flow runs some of them.
UNITS ?= $$($(LIST_UNITS))
# The suites of `make test`.
CORE := $(addprefix ./test/envtest/,flow mock manifest declarative stategraph patch conformance examples)
# The race detector without checks of unsafe pointers, which take a sixth of its time: only dependencies use unsafe pointers.
DETECT_RACES := -race -gcflags=all=-d=checkptr=0
# In these suites, most goroutines of the library meet each other, so they run with the race detector, as nearly all units do. The
# other suites need half of the processor time without it. The longest suites begin first, so that none is alone at the end.
RACE := $(addprefix ./test/envtest/,faults managed soak targets moves hostile)
# It begins when the suites without Ginkgo have ended, so that all groups of suites end at about the same time.
LATE_RACE := ./test/envtest/hostile
LONGEST := ./test/landscaper/suite ./test/envtest/sets ./test/envtest/programs
SUITES ?= $(LONGEST) $$($(LIST_GINKGO) | grep -vxF "$$(go list $(CORE) $(LONGEST) $(RACE))")
# If SUITES is set, only these suites run.
IS_ALL_SUITES := $(filter undefined file,$(origin SUITES))
# Packages without goroutines, whose tests the race detector makes six to ten times slower.
SEQUENTIAL := ./apply/internal/decide ./contract ./deployerlib/internal/guard ./docs
# The units that take most time begin first.
LARGEST := ./deployerlib ./targets
# With the race detector, the simulation runs fewer seeds and no week, and extension counts no allocations. So these packages
# run both with and without it.
ALSO_WITHOUT_RACE := ./landscapertest/simulation ./extension
ASSETS = KUBEBUILDER_ASSETS=$$(go -C hack run ./assets); export KUBEBUILDER_ASSETS
LANDSCAPER = DEPLOYERKIT_LANDSCAPER=$$(go -C hack run ./assets landscaper); export DEPLOYERKIT_LANDSCAPER

.PHONY: help
help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Show a deployer at work on a control plane of its own
	@hack/run.sh demo

.PHONY: demo-landscaper
demo-landscaper: ## Show the deployers under the real Landscaper; the first run builds it (about 5 minutes)
	@hack/run.sh demo --landscaper

# Suites wait more than they compute: four at a time keep two cores busy. Without the race detector and with Go's test
# cache, a run takes only as long as the tests that a change concerns. The specs with the label "slow" do not run, because
# of -short. make test-<area> runs them, and make test ALL=1, the first step of make test-all, which also runs the units
# with the race detector, while the suites wait.
.PHONY: test
test: $(GOTESTSUM) ## Run go vet, the unit tests, and the core suites on a real API server
	go vet ./...
	@mkdir -p $(EVENTS)/short; units="$(UNITS)"; $(ASSETS); result=0; \
	$(if $(ALL),$(RUN_ALL),$(RUN_SHORT)) \
	exit $$result

define RUN_SHORT
$(RUN_TESTS) --jsonfile $(EVENTS)/short/units.json -- -short -p=4 -timeout=15m $$units || result=1; \
	$(RUN_TESTS) --jsonfile $(EVENTS)/short/core.json -- -short -p=4 -timeout=20m $(CORE) || result=1;
endef

# The suites begin when everything is compiled for the race detector, because compilers would take the processor from them.
# The runs without the race detector are the last ones, because evidence is what the last run of a package reports, and a run
# without it has more tests.
define RUN_ALL
go build $(DETECT_RACES) $$(go list -f '{{if and .GoFiles (ne .Name "main")}}{{.ImportPath}}{{end}}' ./...); \
	{ $(RECORD_TESTS) -count=1 -p=3 -timeout=30m $(CORE) $(GINKGO_REPORT); } & core=$$!; \
	units=$$(go list $$units | grep -vxF "$$(go list $(SEQUENTIAL) $(LARGEST))"); \
	$(RECORD_TESTS) $(DETECT_RACES) -count=1 -timeout=30m $(LARGEST) $$units || result=1; \
	$(RECORD_TESTS) -count=1 -timeout=30m $(ALSO_WITHOUT_RACE) $(SEQUENTIAL) || result=1; \
	wait $$core || result=1;
endef

.PHONY: test-all
test-all: ALL := 1
test-all: forget-events test verify lint test-hack test-envtest test-helm test-charts test-monitoring test-ui check-evidence ## Run everything that must pass before a merge

# The evidence counts only what this run reports.
.PHONY: forget-events
forget-events:
	@rm -rf $(EVENTS)
	@find . -name ginkgo.json -type f -delete

# Fails if a test was skipped, too.
.PHONY: check-evidence
check-evidence:
	go -C hack run ./evidence check $(EVENTS)

.PHONY: count-results
count-results:
	@go -C hack run ./evidence count $(EVENTS)

.PHONY: evidence
evidence: ## Write which test proves which promise, from the results of the last test runs
	go -C hack run ./evidence update $(EVENTS)

.PHONY: test-unit
test-unit: $(GOTESTSUM) ## Run the tests that need no API server, with the race detector
	@packages="$(UNITS)"; $(RECORD_TESTS) $(DETECT_RACES) -count=1 $$packages

# These tests read files of other modules, of which Go's test cache takes no notice.
.PHONY: test-hack
test-hack: $(GOTESTSUM) ## Run the tests of the tools in hack, which also find mutants that are out of date
	@cd hack && $(RECORD_TESTS) $(DETECT_RACES) -count=1 ./...

.PHONY: test-envtest
test-envtest: $(GOTESTSUM) ## Run the suites against a real API server and Landscaper; the first run builds them (about 12 minutes)
	@packages="$(SUITES)"; $(ASSETS); $(LANDSCAPER); result=0; pids=; \
	$(if $(IS_ALL_SUITES),{ $(RECORD_TESTS) $(DETECT_RACES) -count=1 -p=1 -timeout=30m $(filter-out $(LATE_RACE),$(RACE)) $(GINKGO_REPORT); } & pids+=" $$!"; \
	{ $(RECORD_TESTS) -count=1 -p=1 -timeout=30m $$($(LIST_OTHERS)) || result=1; \
	$(RECORD_TESTS) $(DETECT_RACES) -count=1 -p=1 -timeout=40m $(LATE_RACE) $(GINKGO_REPORT) || result=1; exit $$result; } & pids+=" $$!";) \
	$(RECORD_TESTS) -count=1 -p=2 -timeout=30m $$packages $(GINKGO_REPORT) || result=1; \
	for pid in $$pids; do wait $$pid || result=1; done; \
	exit $$result

# The race detector is for the units only: with it, each suite takes another minute to link. The conformance suite runs
# Ginkgo itself, and writes no report. The suites wait more than they compute, so all of them run at the same time.
.PHONY: test-helm
test-helm: $(GOTESTSUM) ## Run the tests of the Helm deployer: units, suites, and its program
	@$(ASSETS); cd $(HELM); result=0; suites=$$($(LIST_GINKGO)); units=$$(go list ./... | grep -v /conformance$$ | grep -vxF "$$suites"); \
	$(RECORD_TESTS) $(DETECT_RACES) -count=1 $$units || result=1; \
	{ $(RECORD_TESTS) -count=1 -timeout=20m ./conformance; } & conformance=$$!; \
	$(RECORD_TESTS) -count=1 -p=2 -timeout=20m $$suites $(GINKGO_REPORT) || result=1; \
	wait $$conformance || result=1; \
	exit $$result

.PHONY: test-charts
test-charts: $(KO) $(GOTESTSUM) ## Render the charts, install them, and run what they render; build images and run them
	@$(ASSETS); cd $(CHARTS); packages=$$(go list ./... | grep -v /install$$); result=0; \
	$(RECORD_TESTS) -count=1 -p=2 -timeout=20m $$packages || result=1; \
	$(RECORD_TESTS) -count=1 -timeout=20m ./install $(GINKGO_REPORT) || result=1; \
	exit $$result

# The scenes wait more than they compute.
.PHONY: test-monitoring
test-monitoring: $(GOTESTSUM) ## Run the queries of the dashboard and the alerts on metrics of the programs
	@$(ASSETS); cd $(MONITORING); $(RECORD_TESTS) -count=1 -parallel=6 -timeout=10m ./...

.PHONY: test-ui
test-ui: $(GOTESTSUM) ## Test the web page in a headless Chromium; SCREENSHOTS=dir keeps the screenshots
	@hack/install-chromium.sh; $(ASSETS); cd $(PAGE); $(RECORD_TESTS) -count=1 -timeout=5m ./...

.PHONY: test-landscaper
test-landscaper: $(GOTESTSUM) ## Run the suite with the real Landscaper
	@$(ASSETS); $(LANDSCAPER); $(RUN_TESTS) -- -timeout=20m ./test/landscaper/suite

# CI does not run this, because Hugo takes minutes to compile. The unit tests check the links between Markdown files.
.PHONY: test-site
test-site: $(HUGO) ## Test the site: its links, and its pages in a headless Chromium; SCREENSHOTS=dir keeps the screenshots
	@hack/install-chromium.sh; cd $(SITE); go test -count=1 -timeout=15m ./...

# The packages of an area: make test-apply tests ./apply/... and ./test/envtest/apply/...
test-%: $(GOTESTSUM)
	@packages="$(patsubst %,./%/...,$(wildcard $* test/envtest/$* test/$*))"; \
	[[ -n $$packages ]] || { echo "make: there is no directory $*, test/$* or test/envtest/$*" >&2; exit 1; }; \
	$(ASSETS); $(RUN_TESTS) -- -p=3 -timeout=20m $$packages

.PHONY: test-ship
test-ship: $(KO) test-site ## Build the images of a release for all platforms and check them, make a dry run, and test the site; cold, it takes about 30 minutes
	cd $(CHARTS) && DEPLOYERKIT_PLATFORMS=$(PLATFORMS) go test -count=1 -timeout=40m ./image
	$(MAKE) release-dry-run

.PHONY: test-systematic
test-systematic: ## Kill each deployer at each of its writes, and let each of its reads lag
	@$(ASSETS); DEPLOYERKIT_SYSTEMATIC=all go test -count=1 -timeout=30m ./test/envtest/systematic -v -ginkgo.v=false; \
	cd $(HELM) && DEPLOYERKIT_SYSTEMATIC=all go test -count=1 -timeout=30m ./envtest -v -ginkgo.v=false -ginkgo.label-filter=systematic

.PHONY: test-soak
test-soak: ## Let everything go wrong for three minutes, then look; SEED=n repeats a run
	@$(ASSETS); go test $(DETECT_RACES) -count=1 -timeout=20m -v ./test/envtest/soak -soak.duration=3m -soak.items=300 -soak.seed=$(SEED)

.PHONY: bench
bench: ## Run the benchmarks; BENCH=regexp selects
	@$(ASSETS); $(LANDSCAPER); go test -run='^$$' -bench='$(BENCH)' -benchmem -timeout=60m ./...; \
	for module in $(PEERS) $(HELM); do (cd $$module && go test -run='^$$' -bench='$(BENCH)' -benchmem -timeout=60m ./...); done

.PHONY: fuzz
fuzz: ## Run every fuzz test for FUZZTIME (30s each, two at once), 100 000 random patches and 10 000 seeds of each simulation; FUZZ=regexp selects
	hack/fuzz.sh $(FUZZTIME) '$(FUZZ)'

.PHONY: mutants
mutants: ## Break the code in many ways and see that a test fails each time; MUTANTS=regexp selects
	go -C hack run ./mutants '$(MUTANTS)'

.PHONY: image
image: $(KO) ## Build the images, and push them to REGISTRY under TAGS; KOFLAGS are further flags of ko
	@for program in helm-deployer manifest-deployer mock-deployer; do \
		dir=.; [[ $$program != helm-deployer ]] || dir=$(HELM); \
		(cd $$dir && KO_DOCKER_REPO=$(REGISTRY)/$$program KO_DEFAULTBASEIMAGE=$(BASE) SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) GOFLAGS=-buildvcs=true \
		$(CURDIR)/$(KO) build --bare --platform=$(PLATFORMS) --tags=$(TAGS) --image-user=65532:65532 --sbom=spdx $(KOFLAGS) \
		--image-label=org.opencontainers.image.title=$$program,org.opencontainers.image.source=$(SOURCE),org.opencontainers.image.revision=$$(git rev-parse HEAD),org.opencontainers.image.licenses=Apache-2.0 \
		./cmd/$$program); \
	done

.PHONY: chart
chart: ## Package the charts in VERSION into DIR, and push them to REGISTRY/charts
	cd $(CHARTS) && go run ./push -commit $$(git rev-parse HEAD) -created $$(git log -1 --format=%ct) $(REGISTRY) $(VERSION) $(abspath $(DIR))

.PHONY: component
component: ## Write the component archives of the deployers in VERSION into DIR, for landscaper-service
	cd $(CHARTS) && go run ./component $(REGISTRY) $(VERSION) $(abspath $(DIR))

.PHONY: sign
sign: ## Sign what image, chart and component made of VERSION, with KEY, and attach its provenance
	cd $(CHARTS) && go run ./sign -key $(abspath $(KEY)) -commit $$(git rev-parse HEAD) -source $(SOURCE) -builder $(BUILDER) \
		$(REGISTRY) $(VERSION) $(abspath $(DIR))

.PHONY: cli
cli: ## Build the program deployerkit of VERSION for three systems into DIR, with bills of materials
	go -C hack run ./release cli $(VERSION) $(abspath $(DIR)) $(SYSTEMS)

# The steps build on each other: component archives name images and charts, checksums.txt lists all files, and sign signs it.
.PHONY: publish
publish:
	$(MAKE) image
	$(MAKE) chart component cli
	go -C hack run ./release notes $(VERSION) $(abspath $(DIR))
	go -C hack run ./release checksums $(abspath $(DIR))
	$(MAKE) sign

.PHONY: release
release: ## Build, push and sign everything of VERSION; needs a clean tree, and that the version may contain the changes of the API
	[[ -z $$(git status --porcelain) ]]
	go -C hack run ./release api $(VERSION)
	$(MAKE) publish

.PHONY: release-dry-run
release-dry-run: $(KO) ## Make a release of VERSION into DIR and a registry on loopback, and list it; cold, it takes about 20 minutes
	go -C hack run ./release api $(VERSION)
	cd $(CHARTS) && go run ./dryrun $(VERSION) $(abspath $(DIR)) PLATFORMS=$(PLATFORMS) SYSTEMS='$(SYSTEMS)'

# `make test-site` checks the links of the site.
.PHONY: site
site: DIR = .cache/site
site: $(HUGO) ## Build the guides to a site in DIR (default .cache/site), which any web server can serve
	$(HUGO) --source $(SITE) --destination $(abspath $(DIR)) --cleanDestinationDir --noBuildLock --panicOnWarning

.PHONY: metrics
metrics: ## Print measures of the code; they are no limits
	go -C hack run ./metrics

.PHONY: lint
lint: $(LINT) $(ACTIONLINT) ## Run the linters
	$(ACTIONLINT)
	$(LINT) run ./...
	cd hack && $(CURDIR)/$(LINT) run ./...
	cd $(PEERS) && $(CURDIR)/$(LINT) run ./...
	cd $(CHARTS) && $(CURDIR)/$(LINT) run ./...
	cd $(HELM) && $(CURDIR)/$(LINT) run ./...
	cd $(PAGE) && $(CURDIR)/$(LINT) run ./...
	cd $(MONITORING) && $(CURDIR)/$(LINT) run ./...
	cd $(SITE) && $(CURDIR)/$(LINT) run ./...

.PHONY: lint-fix
lint-fix: $(LINT) ## Format, and repair what the linters can repair
	$(LINT) run --fix ./...
	cd hack && $(CURDIR)/$(LINT) run --fix ./...
	cd $(PEERS) && $(CURDIR)/$(LINT) run --fix ./...
	cd $(CHARTS) && $(CURDIR)/$(LINT) run --fix ./...
	cd $(HELM) && $(CURDIR)/$(LINT) run --fix ./...
	cd $(PAGE) && $(CURDIR)/$(LINT) run --fix ./...
	cd $(MONITORING) && $(CURDIR)/$(LINT) run --fix ./...
	cd $(SITE) && $(CURDIR)/$(LINT) run --fix ./...

.PHONY: generate
generate: ## Write the generated files
	go generate ./...
	cd $(CHARTS) && go generate ./...

.PHONY: verify
verify: ## Check generated files, go.mod, formatting, go vet and licence headers
	hack/verify.sh

.PHONY: clean
clean: ## Remove what was built here; caches in the home directory stay
	rm -rf bin hack/tools/bin hack/hugo/bin hack/image/bin hack/releasetools/bin .cache/events
	find . \( -name '*.test' -o -name ginkgo.json \) -type f -delete

$(LINT): hack/tools/go.mod hack/tools/go.sum
	cd hack/tools && GOWORK=off GOFLAGS=-mod=readonly CGO_ENABLED=0 go build -trimpath -o bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(GOTESTSUM): hack/tools/go.mod hack/tools/go.sum
	cd hack/tools && GOWORK=off GOFLAGS=-mod=readonly CGO_ENABLED=0 go build -trimpath -o bin/gotestsum gotest.tools/gotestsum

$(ACTIONLINT): hack/releasetools/go.mod hack/releasetools/go.sum
	cd hack/releasetools && GOWORK=off GOFLAGS=-mod=readonly CGO_ENABLED=0 go build -trimpath -o bin/actionlint github.com/rhysd/actionlint/cmd/actionlint

$(HUGO): hack/hugo/go.mod hack/hugo/go.sum
	cd hack/hugo && GOWORK=off GOFLAGS=-mod=readonly CGO_ENABLED=0 go build -trimpath -o bin/hugo github.com/gohugoio/hugo

$(KO): hack/image/go.mod hack/image/go.sum
	cd hack/image && GOWORK=off GOFLAGS=-mod=readonly CGO_ENABLED=0 go build -trimpath -o bin/ko github.com/google/ko
