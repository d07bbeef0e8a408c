# make help says what there is. Every target sets up what it needs (scripts/setup.sh) on its own.
PYTHON := .venv/bin/python
TEST ?= tests
QUERIES ?= 500
KILLS ?= 200
MINUTES ?= 30
WORKERS ?= 2
CLIENTS ?= ../shared/clients
SPARK ?= 4.1
SEED ?= $(shell date +%y%m%d000)

# Tests start many processes. Without compiled files each of them would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo test test-fast test-all goldens smoke nightly check clients hadoop bench docs site picture

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## */\1\t/p' Makefile | expand -t 10

setup:  ## Java, .venv and the dependencies (done by all other targets)
	@sh scripts/setup.sh

demo: setup  ## two minutes: a live changelog, its final table, a kill and a resumption, a gateway
	@$(PYTHON) -m tidemill.client.demo

test: setup  ## every behaviour once (TEST=tests/session: all tests of a part; SHARE=1/3 adds a third of the rest)
	@$(PYTHON) -m pytest -n $(WORKERS) --dist worksteal --tier $(if $(filter tests,$(TEST)),default,all) $(if $(SHARE),--share $(SHARE)) $(TEST)

test-fast: setup  ## the tests without Spark
	@$(PYTHON) -m pytest -n $(WORKERS) --dist worksteal --tier fast $(TEST)

test-all: setup  ## every test: also processes, clusters, browser, random queries, an older Spark
	@$(PYTHON) -m pytest -n $(WORKERS) --dist worksteal $(TEST)
	@$(if $(filter tests,$(TEST)),WORKERS=$(WORKERS) sh scripts/goldens_on_spark.sh $(SPARK))

goldens: setup  ## recorded answers on another version of Spark, in an environment of its own (SPARK=4.1)
	@WORKERS=$(WORKERS) sh scripts/goldens_on_spark.sh $(SPARK)

smoke: setup  ## the wheel in a clean environment runs the README's script
	@sh scripts/smoke_wheel.sh

nightly: setup  ## random queries, flipped bits, kills, sessions by the thousand, a soak (QUERIES=2000 KILLS=50 SEED=7 make nightly)
	@$(PYTHON) -m pytest -m random_queries --queries=$(QUERIES) --seed=$(SEED)
	@$(PYTHON) -m pytest tests/state/test_damage.py --flips=3000 --seed=$(SEED)
	@$(PYTHON) -m pytest tests/cluster --kills=50 --seed=$(SEED) --timeout 3600 -o faulthandler_timeout=3660
	@$(PYTHON) -m pytest tests/gateway/test_random_requests.py tests/gateway/test_hiveserver2_attacks.py \
		--requests=10000 --seed=$(SEED) --timeout 3600 -o faulthandler_timeout=3660
	@$(PYTHON) -m tests.runtime.kills --kills $(KILLS) --seed $(SEED)
	@$(PYTHON) -m tests.connectors.kafka_proof --kills 50 --seed $(SEED)
	@$(PYTHON) -m tests.gateway.kills --kills 20 --seed $(SEED)
	@$(PYTHON) -m tests.gateway.load --sessions 10000 --rows 10000000
	@$(PYTHON) -m bench.soak --minutes $(MINUTES)

check: setup  ## linters, types, layers, generated pages
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m mypy
	@.venv/bin/lint-imports
	@$(PYTHON) scripts/generate_docs.py --check

clients: setup  ## Flink's SQL Client, its JDBC driver, dbt and others against a gateway (CLIENTS=folder)
	@$(PYTHON) scripts/run_clients.py $(CLIENTS) $(NAMES)

hadoop: setup  ## tests against an HDFS and a YARN of this machine (wants mvn, cargo, cc and a JDK)
	@sh scripts/setup_hadoop.sh
	@$(PYTHON) -m pytest tests/hadoop

bench: setup  ## the benchmarks' table (long; see docs/benchmarks.md)
	@$(PYTHON) -m bench.compare

docs: setup  ## writes the generated pages again (make picture: the picture in the README)
	@$(PYTHON) scripts/generate_docs.py

site: setup  ## the docs as a site in site/; broken links fail
	@$(PYTHON) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[site]'
	@NO_MKDOCS_2_WARNING=1 $(PYTHON) -m mkdocs build --strict

picture: setup
	@$(PYTHON) scripts/make_picture.py
