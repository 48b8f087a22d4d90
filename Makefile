# Everything here works on a clean checkout.
.PHONY: test site release

test:  ## what has to pass: ruff, mypy, layers, tests
	.ci/run

site:  ## the documents as a site, in build/site
	python3 -m venv .venv && .venv/bin/pip install --quiet --editable '.[docs]'
	.venv/bin/mkdocs build --strict --quiet -f .site/mkdocs.yml

release:  ## wheel and sdist in dist/, checked: metadata, what is in them, and that an installed wheel runs a job
	.ci/release
