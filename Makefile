# Everything here works on a fresh clone with only Go installed; lint and fmt
# install their tools into ./bin.

GO ?= go
BIN := $(CURDIR)/bin
GOFUMPT_VERSION := v0.12.0
GOLANGCI_VERSION := v2.15.0

.PHONY: demo test lint fmt bench build clean

# The main job on the embedded simulator: no key, no network.
demo: build
	$(BIN)/keen demo

test:
	$(GO) vet ./...
	$(GO) test -race -timeout 20m ./...

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o $(BIN)/keen ./cmd/keen

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

lint: $(BIN)/golangci-lint $(BIN)/gofumpt
	@test -z "$$($(BIN)/gofumpt -l cmd internal *.go)" || { $(BIN)/gofumpt -l cmd internal *.go; exit 1; }
	$(BIN)/golangci-lint run ./...

fmt: $(BIN)/gofumpt
	$(BIN)/gofumpt -w cmd internal *.go

$(BIN)/gofumpt:
	GOBIN=$(BIN) $(GO) install mvdan.cc/gofumpt@$(GOFUMPT_VERSION)

$(BIN)/golangci-lint:
	GOBIN=$(BIN) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)

clean:
	rm -rf $(BIN)
