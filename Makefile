# The targets only call tools: scripts/setup.sh makes the machine ready, scripts/test.sh tests.
.PHONY: help setup image demo test unit container-tests format clean

help:
	@echo "make demo            train BERT on simulated NeuronCores and see the bill"
	@echo "make test            style, types and all tests"
	@echo "make unit            the fast tests: no Docker"
	@echo "make container-tests the simulator's tests, in the image"
	@echo "make image           build the training image"
	@echo "make setup           what the others need: .venv, Docker engine, image"
	@echo "make format          let ruff format and fix"
	@echo "make clean           remove .venv and caches; images and ~/.windtunnel stay"

setup:
	@scripts/setup.sh

demo: setup
	@.venv/bin/python examples/bert_amazon_polarity/run.py

test: setup
	@scripts/setup.sh slurm cluster browser
	@scripts/test.sh

unit:
	@scripts/setup.sh venv
	@.venv/bin/pytest --numprocesses auto --dist loadfile -m "not docker and not notebook" tests/unit tests/contract tests/test_architecture.py

container-tests: setup
	@image="$$(.venv/bin/python scripts/build_image.py test)" && \
		scripts/in_image.sh "$$image" pytest -p no:cacheprovider tests/container

image:
	@scripts/setup.sh

format:
	@scripts/setup.sh venv
	@.venv/bin/ruff check --fix . ; .venv/bin/ruff format .

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
