# dtap's build is Meson's and Ninja's; this is the short way to the usual things.
#
#	make			build
#	sudo make demo		the call hierarchy of a Python program, traced
#	sudo make check		every test; ends with "N passed, N failed, N skipped"
#	make san		build with the address and undefined-behaviour sanitizers, in BUILD-san
#	sudo make check-san	the same tests on that build
#	sudo make check-kernels	what differs by kernel on Debian's kernels (KERNELS, default all), in virtual machines
#	sudo make check-arm64	a cross build for arm64 by qemu-user and in a virtual machine; emulated, so it takes an hour
#	sudo make coverage	the tests (PYTEST_ARGS, UNIT_ARGS) on a build that counts lines; BUILD-cov/coverage.txt
#	sudo make nightly	what takes hours: check on all interpreters, check-san, repetitions, random scripts, fuzzing
#	sudo make bench		what an event costs, beside bpftrace, in one run
#	make fuzz		a short run of each fuzz driver
#	make install		into DESTDIR, prefix (default /usr/local)
#	make uninstall		remove what the last install has put there
#	make package		Debian packages, or with KIND=rpm, static or wheel those, in OUT (default packages)
#	make clean		remove the build folders
#	make help		this list
#
# Missing Debian packages are installed when make runs as root; otherwise it says which and how.  Variables:
# BUILD (default build), PYTEST_ARGS (such as -k gc), UNIT_ARGS (meson test's, such as --suite unit), DTAP_CACHE
# (where the interpreters live, default /var/cache/dtap).

BUILD = build
SAN = $(BUILD)-san
COV = $(BUILD)-cov
FUZZ = $(BUILD)-fuzz
ARM64 = $(BUILD)-arm64
FUZZ_SECONDS = 20
KERNELS =
KIND = deb
OUT = packages
PYTEST_ARGS =
UNIT_ARGS ?=
export UNIT_ARGS

# Never the python3 of a virtual environment or of another installation.
PYTHON = /usr/bin/python3

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

$(BUILD)/build.ninja:
	@tools/need build
	@meson setup $(BUILD)

$(SAN)/build.ninja:
	@tools/need build
	@meson setup $(SAN) -Db_sanitize=address,undefined -Db_lundef=false

$(FUZZ)/build.ninja:
	@tools/need build fuzz
	@CC=clang meson setup $(FUZZ) -Db_sanitize=address,undefined -Db_lundef=false -Dc_args=-fsanitize=fuzzer-no-link

demo: all
	@tools/need pythons
	@tools/pythons make >/dev/null
	@tools/demo $(BUILD)

# The packages come first: cmocka must be there when Meson looks for it.
check:
	@tools/need build test pythons kernel
	@$(MAKE) --no-print-directory all
	@tools/pythons make
	@$(PYTHON) tools/check $(BUILD) $(PYTEST_ARGS)

check-kernels: all
	@tools/need test pythons kernel
	@tools/pythons make >/dev/null
	@tools/check-kernels $(BUILD) $(KERNELS)

# Debian for arm64 is unpacked beside this machine's packages; tools/arm64 says where.
$(ARM64)/build.ninja:
	@tools/arm64 setup $(ARM64)

check-arm64:
	@tools/need build arm64
	@$(MAKE) --no-print-directory $(ARM64)/build.ninja
	@ninja -C $(ARM64)
	@tools/check-arm64 $(ARM64)

san: $(SAN)/build.ninja
	@ninja -C $(SAN)

check-san:
	@tools/need build test pythons kernel
	@$(MAKE) --no-print-directory san
	@tools/pythons make
	@$(PYTHON) tools/check $(SAN) $(PYTEST_ARGS)

$(COV)/build.ninja:
	@tools/need build
	@meson setup $(COV) -Db_coverage=true -Dbuildtype=debug -Dc_args=-fprofile-update=atomic

coverage:
	@tools/need build test pythons kernel
	@$(MAKE) --no-print-directory $(COV)/build.ninja
	@ninja -C $(COV)
	@tools/pythons make
	@$(PYTHON) tools/coverage $(COV) --run $(PYTEST_ARGS)

nightly:
	@tools/need packages stores musl
	@tools/pythons make-free
	@tools/pythons musl || true
	@DTAP_NIGHTLY=1 DTAP_KILLS=200 DTAP_ATTACHES=1000 $(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory check-san
	@DTAP_BUILD=$(SAN) nice tests/faults/sweep.py --share 4
	@DTAP_BUILD=$(SAN) nice tests/faults/sweep.py --share 4 --agent
	@DTAP_BUILD=$(BUILD) nice tests/soak/soak.py --seconds 3600
	@DTAP_BUILD=$(BUILD) nice tests/soak/cycles.py --cycles 2000
	@DTAP_BUILD=$(BUILD) nice tests/soak/budget.py
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=600
	@$(MAKE) --no-print-directory check-arm64
	@DTAP_BUILD=$(BUILD) nice tests/soak/serve.py --pythons 5000

bench: all
	@tools/need pythons bench
	@tools/pythons make >/dev/null
	@$(PYTHON) bench/run $(BUILD)

fuzz: $(FUZZ)/build.ninja
	@tools/fuzz $(FUZZ) $(FUZZ_SECONDS)

# A prefix given here is kept in the build folder, as Meson does.
install: all
	@if [ -n "$(prefix)" ]; then meson configure $(BUILD) -Dprefix="$(prefix)"; fi
	@DESTDIR="$(DESTDIR)" meson install -C $(BUILD)

uninstall:
	@ninja -C $(BUILD) uninstall

package:
	@tools/need build packages
	@tools/package $(KIND) $(OUT)

clean:
	rm -rf $(BUILD) $(SAN) $(COV) $(FUZZ) $(ARM64)

help:
	@sed -n 's/^#\t//p' Makefile

.PHONY: all demo check check-kernels check-arm64 san check-san coverage nightly bench fuzz install uninstall package clean help
