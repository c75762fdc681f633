// Atomic files: content, links, permissions, and every accident that can be staged: a full disk, a limit on
// file size, a killed writer, a reader in between.
#include "base/atomic_file.hpp"

#include "support/child.hpp"
#include "support/files.hpp"

#include <csignal>
#include <memory>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace attmirror {
namespace {

namespace fs = std::filesystem;
using test::expect_bad_input;
using test::expect_error;
using test::TemporaryFolder;
using Names = std::vector<std::string>;

template <class Action>
void expect_environment_error(std::initializer_list<std::string_view> words, Action action) {
  expect_error(ErrorKind::environment, words, action);
}

mode_t mode_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 07777;
}

// Permissions do not bind root: a test of them becomes an ordinary user for its time.
class OrdinaryUser {
 public:
  OrdinaryUser() : before_(::geteuid()) {
    constexpr uid_t nobody = 65534;
    EXPECT_EQ(::seteuid(before_ == 0 ? nobody : before_), 0);
  }
  OrdinaryUser(const OrdinaryUser&) = delete;
  OrdinaryUser& operator=(const OrdinaryUser&) = delete;
  ~OrdinaryUser() { EXPECT_EQ(::seteuid(before_), 0); }

 private:
  uid_t before_;
};

TEST(AtomicFile, ReadsBackWhatWasWritten) {
  const TemporaryFolder folder;
  EXPECT_TRUE(rc::check("any bytes come back", [&folder](const std::string& content) {
    write_file_atomically(folder / "file", content);
    RC_ASSERT(read_text_file(folder / "file") == content);
    RC_ASSERT(test::to_text(read_file(folder / "file")) == content);
  }));
  EXPECT_EQ(folder.names(), Names{"file"});
}

TEST(AtomicFile, WritesLargeAndEmptyFiles) {
  const TemporaryFolder folder;
  const std::string large(5'000'001, 'x');
  write_file_atomically(folder / "file", large);
  EXPECT_EQ(read_text_file(folder / "file"), large);
  write_file_atomically(folder / "file", "");
  EXPECT_TRUE(read_file(folder / "file").empty());
}

TEST(AtomicFile, AcceptsTheLongestNameOfTheFileSystem) {
  const TemporaryFolder folder;
  const std::string name(255, 'n');
  write_file_atomically(folder / name, "content");
  EXPECT_EQ(read_text_file(folder / name), "content");
  EXPECT_EQ(folder.names(), Names{name});
}

TEST(AtomicFile, FollowsTheUmaskAndKeepsThePermissionsOfAnOldFile) {
  const TemporaryFolder folder;
  const mode_t old_mask = ::umask(027);
  write_file_atomically(folder / "new", "1");
  ::umask(old_mask);
  EXPECT_EQ(mode_of(folder / "new"), 0640u);
  ASSERT_EQ(::chmod((folder / "new").c_str(), 0604), 0);
  write_file_atomically(folder / "new", "2");
  EXPECT_EQ(mode_of(folder / "new"), 0604u);
}

TEST(AtomicFile, FollowsLinksAndLeavesThemLinks) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "elsewhere");
  fs::create_symlink("elsewhere/target", folder / "second");
  fs::create_symlink("second", folder / "first");
  write_file_atomically(folder / "first", "new");  // the target does not exist yet
  write_file_atomically(folder / "first", "newer");
  EXPECT_TRUE(fs::is_symlink(folder / "first"));
  EXPECT_TRUE(fs::is_symlink(folder / "second"));
  EXPECT_EQ(read_text_file(folder / "elsewhere/target"), "newer");
}

TEST(AtomicFile, RefusesACircleOfLinks) {
  const TemporaryFolder folder;
  fs::create_symlink("b", folder / "a");
  fs::create_symlink("a", folder / "b");
  expect_environment_error({"cannot write", "/a", "symbolic links"},
                           [&] { write_file_atomically(folder / "a", "content"); });
}

TEST(AtomicFile, NamesPathAndReasonOfAFailedWrite) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "sub");
  write_file_atomically(folder / "file", "content");
  const struct {
    fs::path path;
    std::string_view reason;
  } cases[] = {
      {folder / "missing/file", "No such file or directory"},
      {folder / "sub", "Is a directory"},
      {folder / "sub/", "Is a directory"},
      {folder / "file/below", "Not a directory"},
      {"", "No such file or directory"},
      {folder / std::string(300, 'n'), "File name too long"},
  };
  for (const auto& failing : cases) {
    expect_environment_error({"cannot write", failing.path.string(), failing.reason},
                             [&] { write_file_atomically(failing.path, "x"); });
    expect_environment_error({"cannot write", failing.path.string(), failing.reason},
                             [&] { check_writable(failing.path); });
  }
  EXPECT_EQ(folder.names().size(), 2u);
}

TEST(AtomicFile, RespectsPermissions) {
  const OrdinaryUser user;
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "old");
  fs::permissions(folder / "file", fs::perms::owner_read);
  expect_environment_error({"Permission denied"}, [&] { write_file_atomically(folder / "file", "new"); });
  EXPECT_EQ(read_text_file(folder / "file"), "old");
  fs::permissions(folder / "file", fs::perms::none);
  expect_bad_input({"cannot read", "Permission denied"}, [&] { read_file(folder / "file"); });
  fs::permissions(folder.path(), fs::perms::owner_read | fs::perms::owner_exec);
  expect_environment_error({"Permission denied"}, [&] { check_writable(folder / "new"); });
  expect_environment_error({"Permission denied"}, [&] { write_file_atomically(folder / "new", "x"); });
  fs::permissions(folder.path(), fs::perms::owner_all);
}

TEST(AtomicFile, CheckWritableChangesNothing) {
  const TemporaryFolder folder;
  check_writable(folder / "file");
  EXPECT_TRUE(folder.names().empty());
  write_file_atomically(folder / "file", "content");
  check_writable(folder / "file");
  EXPECT_EQ(read_text_file(folder / "file"), "content");
}

TEST(AtomicFile, WritesToDevicesWithoutReplacingThem) {
  struct stat before {
  }, after{};
  ASSERT_EQ(::stat("/dev/null", &before), 0);
  write_file_atomically("/dev/null", "content");
  ASSERT_EQ(::stat("/dev/null", &after), 0);
  EXPECT_TRUE(S_ISCHR(after.st_mode));
  EXPECT_EQ(before.st_ino, after.st_ino);
  expect_environment_error({"cannot write /dev/full: No space left on device"},
                           [] { write_file_atomically("/dev/full", "content"); });
}

TEST(AtomicFile, ReadsAndWritesPipes) {
  const TemporaryFolder folder;
  const fs::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string content(300'000, 'p');
  ::alarm(60);  // a side that waits for the other for ever ends the program instead
  std::jthread writer([&] { write_file_atomically(pipe, content); });
  EXPECT_EQ(read_text_file(pipe), content);
  writer.join();
  ::alarm(0);
  EXPECT_TRUE(fs::is_fifo(pipe));
}

TEST(AtomicFile, KeepsTheOldContentWhenTheDiskIsFull) {
  const TemporaryFolder folder;
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "mounting a small disk needs root";
  const std::shared_ptr<const TemporaryFolder> unmount_at_end(
      &folder, [](const TemporaryFolder* mounted) { EXPECT_EQ(::umount(mounted->path().c_str()), 0); });
  write_file_atomically(folder / "file", "old");
  expect_environment_error({"cannot write", "file", "No space left on device"},
                           [&] { write_file_atomically(folder / "file", std::string(200'000, 'x')); });
  EXPECT_EQ(read_text_file(folder / "file"), "old");
  EXPECT_EQ(folder.names(), Names{"file"});
}

// The same accident for users who may not mount: the kernel cuts a write short at the limit and fails the next.
TEST(AtomicFile, KeepsTheOldContentWhenAWriteIsCutShort) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "old");
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const rlimit limit{4096, old_limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  expect_environment_error({"cannot write", "File too large"},
                           [&] { write_file_atomically(folder / "file", std::string(10'000, 'x')); });
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(read_text_file(folder / "file"), "old");
  EXPECT_EQ(folder.names(), Names{"file"});
}

bool is_whole(const std::string& content) {
  return content.size() == 100'000 && content.find_first_not_of(content[0]) == std::string::npos;
}

// A child rewrites one file again and again, with another letter each time, and is killed at an arbitrary moment.
TEST(AtomicFile, SurvivesKillNine) {
  const TemporaryFolder folder;
  const fs::path path = folder / "file";
  write_file_atomically(path, std::string(100'000, 'a'));
  for (int round = 0; round < 8; ++round) {
    test::Pipe written;
    test::Child child([&] {
      for (char letter = 'a';; letter = static_cast<char>('a' + (letter + 1 - 'a') % 26)) {
        write_file_atomically(path, std::string(100'000, letter));
        written.signal();
      }
    });
    for (int file = 0; file <= round; ++file) ASSERT_TRUE(written.wait());
    while (folder.names().size() < 2) {  // until the next one is begun
    }
    const std::string temporary = ".file.tmp-" + std::to_string(child.pid()) + "-";
    child.kill();
    EXPECT_TRUE(is_whole(read_text_file(path)));
    for (const auto& name : folder.names())
      EXPECT_TRUE(name == "file" || name.starts_with(temporary)) << name;
    for (const auto& name : folder.names())
      if (name != "file") fs::remove(folder / name);
  }
}

TEST(AtomicFile, AReaderNeverSeesHalfAFile) {
  const TemporaryFolder folder;
  const fs::path path = folder / "file";
  write_file_atomically(path, std::string(100'000, 'a'));
  std::jthread writer([&](const std::stop_token& stop) {
    for (char letter = 'a'; !stop.stop_requested();
         letter = letter == 'z' ? 'a' : static_cast<char>(letter + 1))
      write_file_atomically(path, std::string(100'000, letter));
  });
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(is_whole(read_text_file(path)));
}

TEST(AtomicFile, WritersOfOneFileDoNotDisturbEachOther) {
  const TemporaryFolder folder;
  const fs::path path = folder / "file";
  {
    std::vector<std::jthread> writers;
    for (char letter = 'a'; letter < 'e'; ++letter)
      writers.emplace_back([&path, letter] {
        for (int i = 0; i < 10; ++i) write_file_atomically(path, std::string(100'000, letter));
      });
  }
  EXPECT_TRUE(is_whole(read_text_file(path)));
  EXPECT_EQ(folder.names(), Names{"file"});
}

TEST(AtomicFile, RefusesToReadWhatIsNoFile) {
  const TemporaryFolder folder;
  expect_bad_input({"cannot read", "missing", "No such file or directory"},
                   [&] { read_file(folder / "missing"); });
  expect_bad_input({"cannot read", folder.path().string(), "Is a directory"},
                   [&] { read_file(folder.path()); });
  expect_bad_input({"cannot read", "No such file or directory"}, [] { read_file(""); });
  write_file_atomically(folder / "file", "x");
  expect_bad_input({"Not a directory"}, [&] { read_file(folder / "file/below"); });
}

TEST(ReadFile, DoesNotReadForEver) {
  expect_bad_input({"cannot read /dev/zero: it is not a regular file and has not ended after 64 MiB"},
                   [] { read_file("/dev/zero"); });
  expect_bad_input({"/dev/zero", "64 MiB"}, [] { read_text_file("/dev/zero"); });
  EXPECT_TRUE(read_file("/dev/null").empty());
  const TemporaryFolder folder;
  const fs::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ::alarm(60);
  expect_bad_input({"cannot read", "it is a pipe that nobody writes to"}, [&] { read_file(pipe); });
  std::jthread writer([&] { write_file_atomically(pipe, "late"); });
  EXPECT_EQ(read_text_file(pipe), "late");
  writer.join();
  ::alarm(0);
  EXPECT_EQ(beginning_of_file(pipe, 4), "");
}

TEST(BeginningOfFile, IsOfFiles) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "abcdef");
  EXPECT_EQ(beginning_of_file(folder / "file", 4), "abcd");
  EXPECT_EQ(beginning_of_file(folder / "file", 40), "abcdef");
  EXPECT_EQ(beginning_of_file(folder / "none", 4), "");
  EXPECT_EQ(beginning_of_file("/dev/zero", 4), "");
}

TEST(RefuseLink, RefusesLinksToFilesOnly) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "mine");
  fs::create_symlink(folder / "file", folder / "link");
  fs::create_symlink(folder / "nowhere", folder / "dangling");
  fs::create_symlink("/dev/null", folder / "device");
  refuse_link(folder / "file");
  refuse_link(folder / "none");
  refuse_link(folder / "device");
  expect_bad_input({"link is a symbolic link"}, [&] { refuse_link(folder / "link"); });
  expect_bad_input({"dangling is a symbolic link"}, [&] { refuse_link(folder / "dangling"); });
}

}  // namespace
}  // namespace attmirror
