#!/bin/sh
# Names all that a build would miss on this machine, with the one line that installs it:
#
#     sh prerequisites.sh [deb] [gssapi] [libz-static] [oidc] [ssl-vendored] [tests]
#
# A build script can't do that. Cargo starts those of the dependencies first, and each of them stops at the first thing that it
# misses, in words of its own; and without a C compiler no build script is linked.
set -u

missing=
packages=
# lacks WHAT PACKAGE..
lacks() {
    missing="$missing${missing:+, }$1"
    shift
    packages="$packages${1:+ $*}"
}
# header NAME LIBRARY: the compiler finds it, or pkg-config knows the library.
header() {
    echo "#include <$1>" | "${CC:-cc}" -E -x c - >/dev/null 2>&1 || "${PKG_CONFIG:-pkg-config}" --exists "$2" 2>/dev/null
}
found() { command -v "$1" >/dev/null 2>&1; }
wants() { case " $words " in *" $1 "*) true ;; *) false ;; esac; }

words=$*
for word; do
    case $word in
    deb | gssapi | libz-static | oidc | ssl-vendored | tests) ;;
    *)
        echo "prerequisites.sh: unknown word \"$word\"; the words are deb, gssapi, libz-static, oidc, ssl-vendored and tests" >&2
        exit 2
        ;;
    esac
done

# The rust-version of Cargo.toml.
oldest_rust=1.88
rust=$(cargo --version 2>/dev/null)
minor=${rust#cargo 1.}
[ "${minor%%.*}" -ge "${oldest_rust#1.}" ] 2>/dev/null || lacks "Rust $oldest_rust or later (https://rustup.rs${rust:+; this is $rust})"
found "${CC:-cc}" || lacks "a C compiler" gcc libc6-dev
found g++ || found clang++ || found "${CXX:-c++}" || lacks "a C++ compiler" g++
found make || lacks make make
wants libz-static || header zlib.h zlib || lacks "the headers of zlib" zlib1g-dev
if wants ssl-vendored; then
    # What OpenSSL's Configure uses. Debian's perl-base has a perl without them.
    perl -MFindBin -MIPC::Cmd -MTime::Piece -e 1 2>/dev/null || lacks "perl with FindBin, IPC::Cmd and Time::Piece" perl
elif [ -z "${OPENSSL_DIR:-}${OPENSSL_LIB_DIR:-}" ]; then
    found "${PKG_CONFIG:-pkg-config}" || lacks pkg-config pkg-config
    header openssl/ssl.h openssl || lacks "the headers of OpenSSL" libssl-dev
fi
if wants gssapi; then
    header sasl/sasl.h libsasl2 || lacks "the headers of libsasl2" libsasl2-dev
fi
if wants oidc; then
    header curl/curl.h libcurl || lacks "the headers of libcurl" libcurl4-openssl-dev
fi
if wants tests; then
    found java || lacks "Java 17 or later" default-jdk-headless
    found mvn || lacks Maven maven
    found less || lacks less less
    found openssl || lacks "the program openssl" openssl
fi
if wants deb; then
    found dpkg-shlibdeps || lacks dpkg-shlibdeps dpkg-dev
fi

[ -z "$missing" ] && exit 0
echo "missing for a build: $missing" >&2
[ -z "$packages" ] || echo "on Debian or Ubuntu: apt-get install$packages" >&2
exit 1
