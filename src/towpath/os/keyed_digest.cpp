// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/keyed_digest.hpp"

#include <sys/random.h>

#include <cerrno>
#include <stdexcept>
#include <string>
#include <system_error>

#include "towpath/os/shared_library.hpp"

namespace towpath::os {
namespace {

// Two functions of libcrypto, declared as in its documentation. Both major versions have them.
struct Crypto {
  const void* (*sha256)() = nullptr;
  unsigned char* (*hmac)(const void* digest, const void* key, int key_bytes,
                         const unsigned char* message, std::size_t message_bytes,
                         unsigned char* out, unsigned* out_bytes) = nullptr;

  Crypto() {
    const SharedLibrary library{"libcrypto.so.3", "libcrypto.so.1.1"};
    library.find(sha256, "EVP_sha256");
    library.find(hmac, "HMAC");
    if (sha256 == nullptr || hmac == nullptr) {
      throw std::runtime_error("a job's token needs libcrypto of OpenSSL" +
                               (library.is_loaded()
                                    ? std::string()
                                    : ", which cannot be loaded (" + library.reason() + ")") +
                               "; install libssl3");
    }
  }
};

}  // namespace

KeyedDigest keyed_digest(std::string_view key, std::span<const std::byte> message) {
  static const Crypto crypto;
  KeyedDigest digest{};
  auto* const out = reinterpret_cast<unsigned char*>(digest.data());
  unsigned size = 0;
  if (crypto.hmac(crypto.sha256(), key.data(), static_cast<int>(key.size()),
                  reinterpret_cast<const unsigned char*>(message.data()), message.size(), out,
                  &size) == nullptr ||
      size != digest.size()) {
    throw std::runtime_error("libcrypto does not support HMAC-SHA-256 on this host");
  }
  return digest;
}

bool is_same(std::span<const std::byte> one, std::span<const std::byte> other) {
  if (one.size() != other.size()) return false;
  std::byte difference{};
  for (std::size_t i = 0; i < one.size(); ++i) difference |= one[i] ^ other[i];
  return difference == std::byte{};
}

void fill_random(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::getrandom(bytes.data(), bytes.size(), 0);
    if (got < 0 && errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "cannot get random bytes");
    }
    if (got > 0) bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

}  // namespace towpath::os
