# SPDX-License-Identifier: Apache-2.0
#
# Every target sets up what it needs. CI runs `make test` and nothing that cannot be run here.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

LINT := hack/tools/bin/golangci-lint
KO := hack/image/bin/ko
# Where images go, on which they are based, and what they are called: TAGS=v0.1.0,v0.152.0,v1.4.0 adds Landscaper's versions.
REGISTRY ?= ghcr.io/deployerkit
BASE ?= gcr.io/distroless/static-debian12:nonroot
PLATFORMS ?= linux/amd64,linux/arm64
# The charts of a version install the images with that tag.
VERSION ?= v0.1.0
TAGS ?= $(VERSION)
DIR ?= .cache/release
# The private key that signs a release, as `cosign generate-key-pair` writes it; COSIGN_PASSWORD is its password.
KEY ?= cosign.key
BUILDER ?= $(SOURCE)/blob/main/Makefile
SOURCE := https://github.com/deployerkit/deployerkit
# Benchmarks against other tools: a module of its own, for what those depend on.
PEERS := test/envtest/bench/peers
# Charts and images: a module of its own, for Helm.
CHARTS := test/envtest/charts
BENCH ?= .
FUZZ ?= .
FUZZTIME ?= 30s
SEED ?= 0
MUTANTS ?= .
REPORTS := $(CURDIR)/.cache/reports

# A package whose tests use Ginkgo or the control plane is a suite; all others are units.
ALL_SUITES = go list -f '{{.ImportPath}} {{.TestImports}} {{.XTestImports}}' ./... | grep -E 'onsi/ginkgo|deployerkit/controlplane[] ]' | cut -d' ' -f1
LIST_UNITS = suites=$$($(ALL_SUITES)); go list ./... | grep -vxF "$$suites"
# UNITS=./patch or SUITES=./test/envtest/flow runs some of them.
UNITS ?= $$($(LIST_UNITS))
SUITES ?= $$($(ALL_SUITES))
ASSETS = KUBEBUILDER_ASSETS=$$(go run ./hack/assets); export KUBEBUILDER_ASSETS
LANDSCAPER = DEPLOYERKIT_LANDSCAPER=$$(go run ./hack/assets landscaper); export DEPLOYERKIT_LANDSCAPER

.PHONY: help
help: ## Show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: ## Show a deployer at work on a control plane of its own
	@hack/run.sh demo

.PHONY: demo-landscaper
demo-landscaper: ## Show the deployers under the real Landscaper; the first run builds it (about 5 minutes)
	@hack/run.sh demo --landscaper

.PHONY: test
test: verify lint forget-reports test-unit test-envtest test-charts ## Run everything that must pass before a merge
	go run ./hack/evidence check $(REPORTS)

# The evidence counts only what this run reports.
.PHONY: forget-reports
forget-reports:
	@rm -rf $(REPORTS)

.PHONY: evidence
evidence: ## Write which test proves which promise, from the reports of the last test runs
	go run ./hack/evidence update $(REPORTS)

.PHONY: test-unit
test-unit: ## Run the tests that need no API server, with the race detector
	@go run ./hack/gotest -reports $(REPORTS) -race -count=1 $(UNITS)

# Suites wait more than they compute: three at a time keep two cores busy.
.PHONY: test-envtest
test-envtest: ## Run the suites against a real API server and Landscaper; the first run builds them (about 12 minutes)
	@$(ASSETS); $(LANDSCAPER); go run ./hack/gotest -reports $(REPORTS) -race -count=1 -p=3 -timeout=20m $(SUITES)

.PHONY: test-charts
test-charts: $(KO) ## Render the charts, install them, and run what they render; build images and run them
	@go build -o .cache/gotest ./hack/gotest; $(ASSETS); \
	cd $(CHARTS) && $(CURDIR)/.cache/gotest -reports $(REPORTS) -count=1 -p=2 -timeout=20m ./...

.PHONY: test-ship
test-ship: $(KO) ## Build the images of a release for all platforms, and check them; cold, it takes about 10 minutes
	cd $(CHARTS) && DEPLOYERKIT_PLATFORMS=$(PLATFORMS) go test -count=1 -timeout=40m ./image

.PHONY: test-systematic
test-systematic: ## Kill each deployer at each of its writes, and let each of its reads lag
	@$(ASSETS); DEPLOYERKIT_SYSTEMATIC=all go test -count=1 -timeout=30m ./test/envtest/systematic -v -ginkgo.v=false

.PHONY: test-soak
test-soak: ## Let everything go wrong for three minutes, then look; SEED=n repeats a run
	@$(ASSETS); go test -race -count=1 -timeout=20m -v ./test/envtest/soak -soak.duration=3m -soak.items=300 -soak.seed=$(SEED)

.PHONY: bench
bench: ## Run the benchmarks; BENCH=regexp selects
	@$(ASSETS); $(LANDSCAPER); go test -run='^$$' -bench='$(BENCH)' -benchmem -timeout=60m ./...; \
	cd $(PEERS) && go test -run='^$$' -bench='$(BENCH)' -timeout=60m ./...

.PHONY: fuzz
fuzz: ## Run every fuzz test for FUZZTIME (30s each, two at once), and 100 000 random patches; FUZZ=regexp selects
	hack/fuzz.sh $(FUZZTIME) '$(FUZZ)'

.PHONY: mutants
mutants: ## Break the code in many ways and see that a test fails each time; MUTANTS=regexp selects
	go run ./hack/mutants '$(MUTANTS)'

.PHONY: image
image: $(KO) ## Build the images, and push them to REGISTRY under TAGS; KOFLAGS are further flags of ko
	@for program in manifest-deployer mock-deployer; do \
		KO_DOCKER_REPO=$(REGISTRY)/$$program KO_DEFAULTBASEIMAGE=$(BASE) SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) GOFLAGS=-buildvcs=true \
		$(KO) build --bare --platform=$(PLATFORMS) --tags=$(TAGS) --image-user=65532:65532 --sbom=spdx $(KOFLAGS) \
		--image-label=org.opencontainers.image.title=$$program,org.opencontainers.image.source=$(SOURCE),org.opencontainers.image.revision=$$(git rev-parse HEAD),org.opencontainers.image.licenses=Apache-2.0 \
		./cmd/$$program; \
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

.PHONY: release
release: ## Build, push and sign the images, charts and component archives of VERSION; needs a clean tree
	[[ -z $$(git status --porcelain) ]]
	$(MAKE) image
	$(MAKE) chart component
	$(MAKE) sign

.PHONY: metrics
metrics: ## Print measures of the code and what exceeds them; it fails nothing
	go run ./hack/metrics

.PHONY: lint
lint: $(LINT) ## Run the linters
	$(LINT) run ./...
	cd $(PEERS) && $(CURDIR)/$(LINT) run ./...
	cd $(CHARTS) && $(CURDIR)/$(LINT) run ./...

.PHONY: lint-fix
lint-fix: $(LINT) ## Format, and repair what the linters can repair
	$(LINT) run --fix ./...
	cd $(PEERS) && $(CURDIR)/$(LINT) run --fix ./...
	cd $(CHARTS) && $(CURDIR)/$(LINT) run --fix ./...

.PHONY: generate
generate: ## Write the generated files
	go generate ./...
	cd $(CHARTS) && go generate ./...

.PHONY: verify
verify: ## Check generated files, go.mod, formatting, go vet and licence headers
	hack/verify.sh

.PHONY: clean
clean: ## Remove what was built here; caches in the home directory stay
	rm -rf bin hack/tools/bin hack/image/bin report.xml
	find . -name '*.test' -type f -delete

$(LINT): hack/tools/go.mod hack/tools/go.sum
	cd hack/tools && GOWORK=off GOFLAGS=-mod=readonly CGO_ENABLED=0 go build -trimpath -o bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(KO): hack/image/go.mod hack/image/go.sum
	cd hack/image && GOWORK=off GOFLAGS=-mod=readonly CGO_ENABLED=0 go build -trimpath -o bin/ko github.com/google/ko
