// SPDX-FileCopyrightText: The Towpath authors
// SPDX-License-Identifier: Apache-2.0
#include "towpath/os/compile_cache.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace towpath::os {
namespace {

namespace fs = std::filesystem;

class CompileCache : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "towpath-cache-XXXXXX";
    folder_ = ::mkdtemp(name.data());
    ::setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("XDG_CACHE_HOME");
    fs::remove_all(folder_);
  }
  fs::path folder_;
};

TEST_F(CompileCache, IsForItsUserAlone) {
  const fs::path kernels = compile_cache("kernels");
  EXPECT_EQ(kernels, folder_ / "towpath" / "kernels");
  EXPECT_EQ(fs::status(kernels).permissions(), fs::perms::owner_all);
  for (const fs::path& open : {kernels, kernels.parent_path()}) {
    fs::permissions(open, fs::perms::all);
    EXPECT_THROW(compile_cache("kernels"), std::runtime_error);
    fs::permissions(open, fs::perms::owner_all);
  }
  EXPECT_EQ(compile_cache("kernels"), kernels);
}

TEST_F(CompileCache, ALinkToAnotherFolderIsRefused) {
  fs::create_directory(folder_ / "other");
  fs::create_directory_symlink(folder_ / "other", folder_ / "towpath");
  EXPECT_THROW(compile_cache("kernels"), std::runtime_error);
}

TEST_F(CompileCache, AManifestIsCurrentUntilAFileChanges) {
  const fs::path a = folder_ / "a";
  const fs::path b = folder_ / "b";
  const fs::path manifest = folder_ / "manifest";
  write_file(a, "one");
  write_file(b, "two");
  Manifest made;
  made.add(a);
  made.add(b);
  EXPECT_FALSE(Manifest::is_current(manifest));
  write_file(manifest, made.text());
  EXPECT_TRUE(Manifest::is_current(manifest));
  write_file(b, "tw");
  EXPECT_FALSE(Manifest::is_current(manifest));
  write_file(b, "two");
  EXPECT_TRUE(Manifest::is_current(manifest));
  fs::remove(a);
  EXPECT_FALSE(Manifest::is_current(manifest));
  write_file(manifest, "");
  EXPECT_FALSE(Manifest::is_current(manifest));
}

TEST_F(CompileCache, AManifestOfAnUnreachableFileIsNotCurrent) {
  const fs::path manifest = folder_ / "manifest";
  const std::string digest(32, '0');
  // Too long a name, and a name below a file: both are errors for the system.
  for (const std::string& path : {"/" + std::string(5'000, 'a'), (folder_ / "a" / "b").string()}) {
    write_file(folder_ / "a", "one");
    write_file(manifest, digest + " " + path + "\n");
    EXPECT_FALSE(Manifest::is_current(manifest)) << path;
  }
}

// A file that was renamed or given an older time counts as well.
TEST_F(CompileCache, AFileThatIsSavedLaterHasChanged) {
  constexpr FileTime kSecond = 1'000'000'000;
  const FileTime now = file_time_now();
  const fs::path file = folder_ / "file";
  write_file(file, "one");
  EXPECT_TRUE(has_changed_since(file, now));
  EXPECT_FALSE(has_changed_since(file, now + 10 * kSecond));
  EXPECT_TRUE(has_changed_since(folder_ / "none", now));
  fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_TRUE(has_changed_since(file, now));
}

TEST_F(CompileCache, FilesOfARuleMayHaveSpacesInTheirNames) {
  write_file(folder_ / "rule", "-: /a.h \\\n /with\\ space/b.h \\\n c.h\n");
  EXPECT_EQ(dependencies(folder_ / "rule"),
            (std::vector<fs::path>{"/a.h", "/with space/b.h", "c.h"}));
}

TEST_F(CompileCache, ASourceThatIsSavedWhileItIsCompiledLeavesNoManifest) {
  const fs::path object = folder_ / "object";
  const fs::path source = folder_ / "source";
  write_file(object, "code");
  write_file(source, "one");
  constexpr FileTime kSecond = 1'000'000'000;
  write_manifest(object, {source}, file_time_now() + kSecond);
  EXPECT_TRUE(Manifest::is_current(manifest_of(object)));
  write_manifest(object, {source}, file_time_now() - kSecond);
  EXPECT_FALSE(fs::exists(manifest_of(object)));
}

TEST_F(CompileCache, TheOldestEntriesAreEvicted) {
  const std::string text(1000, 'x');
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 10; ++i) {
    const fs::path file = folder_ / std::to_string(i);
    write_file(file, text);
    fs::last_write_time(file, now - std::chrono::minutes(i));
  }
  evict(folder_, 10'000);
  EXPECT_TRUE(fs::exists(folder_ / "9"));
  evict(folder_, 9'999);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(fs::exists(folder_ / std::to_string(i)), i < 4) << i;
}

TEST_F(CompileCache, ScratchIsRemoved) {
  {
    Scratch scratch;
    write_file(scratch.add(folder_ / "file"), "one");
    fs::create_directories(scratch.add(folder_ / "folder") / "below");
    scratch.add(folder_ / "never made");
  }
  EXPECT_TRUE(fs::is_empty(folder_));
}

}  // namespace
}  // namespace towpath::os
