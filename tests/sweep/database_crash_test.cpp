// What happens to the file when the process, the disk or a second process does its worst.
#include "support/child.hpp"
#include "support/files.hpp"
#include "sweep_rows.hpp"
#include <attmirror/sweep/database.hpp>

#include <chrono>
#include <fstream>
#include <random>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

namespace attmirror {
namespace {

namespace fs = std::filesystem;
using test::Child;
using test::example_header;
using test::example_rows;
using test::expect_error;
using test::in_child;
using test::Pipe;
using test::TemporaryFolder;
using Mode = SweepDatabase::Mode;

constexpr std::int64_t batch_size = 8;

std::vector<RunRow> batch(std::int64_t number) {
  return example_rows(number * batch_size, (number + 1) * batch_size);
}

SweepDatabase open_or_make(const fs::path& path) {
  std::error_code ignored;
  const auto size = fs::file_size(path, ignored);
  return SweepDatabase(path, ignored || size == 0 ? Mode::create : Mode::resume, example_header());
}

// Writes batches, saying so after each, and closes and opens now and then.
void write_batches(const fs::path& path, const Pipe& acknowledgements, std::int64_t end) {
  for (std::int64_t number = -1; number < end;) {
    SweepDatabase database = open_or_make(path);
    if (number < 0) number = database.count() / batch_size;
    for (const std::int64_t pause = number + 25; number < std::min(pause, end); ++number) {
      database.write(batch(number));
      acknowledgements.put(&number, sizeof number);
    }
  }
}

TEST(SweepDatabaseCrash, KilledAtAnyMomentItKeepsWholeBatchesAndAllThatWereAcknowledged) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> microseconds(0, 15'000);
  auto folder = std::make_unique<TemporaryFolder>();
  std::int64_t kills_with_rows = 0, kept = 0;
  for (int round = 0; round < 50; ++round) {
    if (round % 10 == 9)
      folder = std::make_unique<TemporaryFolder>(), kept = 0;  // be killed while it is made, too
    const fs::path path = *folder / "r.db";
    Pipe acknowledgements;
    Child child([&] { write_batches(path, acknowledgements, 1'000'000); });
    acknowledgements.close_writing();
    std::int64_t acknowledged = kept - 1;
    // Some are killed while they make or open the file, the others after their first batch: on a slow disk making it
    // takes longer than our patience.
    if (round % 3 != 0) {
      ASSERT_TRUE(acknowledgements.get(&acknowledged, sizeof acknowledged));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds(random)));
    child.kill();
    while (acknowledgements.get(&acknowledged, sizeof acknowledged)) {
    }
    if (!fs::exists(path) || (acknowledged < 0 && fs::file_size(path) == 0)) {
      ASSERT_LT(acknowledged, 0);
      continue;
    }
    // Read as it was left, log and all, by a reader or by the next writer.
    std::optional<SweepDatabase> database;
    try {
      if (round % 2 == 0)
        database.emplace(path);
      else
        database.emplace(path, Mode::resume, example_header());
    } catch (const Error& error) {
      ASSERT_LT(acknowledged, 0) << error.what();  // only a file that was never finished is empty
      ASSERT_NE(std::string(error.what()).find("is empty"), std::string::npos) << error.what();
      continue;
    }
    ASSERT_EQ(database->integrity(), "");
    const std::int64_t count = database->count();
    ASSERT_EQ(count % batch_size, 0);
    ASSERT_GE(count / batch_size, acknowledged + 1);
    ASSERT_LE(count / batch_size, acknowledged + 2);  // the one in flight may have made it
    std::int64_t expected = 0;
    const std::vector<std::string> columns{"run"};
    database->for_each_run(columns, [&](std::span<const Cell> cells) {
      ASSERT_EQ(std::get<std::int64_t>(cells[0]), expected++);
    });
    for (std::int64_t run = std::max<std::int64_t>(0, count - 2 * batch_size); run < count; ++run)
      ASSERT_EQ(database->arrays(test::key_of(run)), test::example_row(run).arrays);
    kept = count / batch_size;
    if (count > 0) ++kills_with_rows;
  }
  EXPECT_GE(kills_with_rows, 5);  // or nothing was tested; a busy machine kills many before their first batch

  // The next one completes it.
  const fs::path path = *folder / "r.db";
  const std::int64_t end = kept + 40;
  Pipe acknowledgements;
  Child child([&] { write_batches(path, acknowledgements, end); });
  acknowledgements.close_writing();
  for (std::int64_t number = 0; acknowledgements.get(&number, sizeof number);) {
  }
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(folder->names(), std::vector<std::string>{"r.db"});
  EXPECT_EQ(SweepDatabase(path).rows(SweepDatabase::Arrays::load), example_rows(0, end * batch_size));
}

TEST(SweepDatabaseCrash, ALogThatIsTornEndsWithTheLastWholeBatch) {
  const TemporaryFolder folder;
  SweepDatabase database(folder / "r.db", Mode::create, example_header());
  for (std::int64_t number = 0; number < 6; ++number) database.write(batch(number));
  const auto size = fs::file_size(folder / "r.db-wal");
  std::int64_t last = 0;
  for (std::uintmax_t length = 0; length <= size; length += length < 100 ? 7 : 1931) {
    const fs::path copy = folder / "copy.db";
    fs::copy_file(folder / "r.db", copy, fs::copy_options::overwrite_existing);
    fs::copy_file(folder / "r.db-wal", folder / "copy.db-wal", fs::copy_options::overwrite_existing);
    fs::resize_file(folder / "copy.db-wal", length);
    const SweepDatabase torn(copy, Mode::resume, example_header());
    const std::int64_t count = torn.count();
    EXPECT_EQ(count % batch_size, 0);
    EXPECT_GE(count, last);
    last = count;
    EXPECT_EQ(torn.rows(SweepDatabase::Arrays::load), example_rows(0, count));
  }
  EXPECT_GE(last, 5 * batch_size);
}

TEST(SweepDatabaseCrash, OneWriterAtATimeAndReadersMeanwhile) {
  const TemporaryFolder folder;
  const fs::path path = folder / "r.db";
  Pipe ready, go_on;
  Child writer([&] {
    SweepDatabase database(path, Mode::create, example_header());
    database.write(batch(0));
    ready.signal();
    go_on.wait();
    for (std::int64_t number = 1; number < 60; ++number) database.write(batch(number));
  });
  ASSERT_TRUE(ready.wait());
  for (const Mode mode : {Mode::create, Mode::resume, Mode::overwrite})
    expect_error(
        ErrorKind::environment,
        {path.string() + " is being written by another process", fmt::format("(pid {})", writer.pid())},
        [&] { SweepDatabase(path, mode, example_header()); });
  SweepDatabase reader(path);
  EXPECT_EQ(reader.rows(SweepDatabase::Arrays::load), batch(0));
  go_on.signal();
  {
    const SweepDatabase::Snapshot moment(reader);
    const std::int64_t count = reader.count();
    EXPECT_EQ(writer.wait(), 0);
    EXPECT_EQ(reader.count(), count);  // one moment, though the writer has finished meanwhile
  }
  EXPECT_EQ(reader.count(), 60 * batch_size);
  EXPECT_EQ(SweepDatabase(path, Mode::resume, example_header()).count(), 60 * batch_size);
}

TEST(SweepDatabaseCrash, ReadersSeeWholeBatchesOnly) {
  const TemporaryFolder folder;
  const fs::path path = folder / "r.db";
  SweepDatabase(path, Mode::create, example_header());
  Pipe acknowledgements;
  Child writer([&] { write_batches(path, acknowledgements, 200); });
  acknowledgements.close_writing();
  SweepDatabase reader(path);
  std::int64_t last = 0, seen = 0;
  for (std::int64_t number = 0; acknowledgements.get(&number, sizeof number);) {
    const std::int64_t count = reader.count();
    ASSERT_EQ(count % batch_size, 0);
    ASSERT_GE(count, std::max(last, (number + 1) * batch_size));
    if (++seen % 20 == 0) {
      ASSERT_EQ(SweepDatabase(path).rows(SweepDatabase::Arrays::load).size() % batch_size, 0u);
    }
    last = count;
  }
  EXPECT_EQ(writer.wait(), 0);
  EXPECT_EQ(reader.rows(SweepDatabase::Arrays::load), example_rows(0, 200 * batch_size));
}

// SQLite's lock of a file in use, as another process sees it.
bool is_locked_by(const fs::path& path, pid_t pid) {
  return in_child([&]() -> std::string {
           const int fd = ::open(path.c_str(), O_RDWR);
           constexpr off_t shared_first = 0x40000002, shared_size = 510;
           struct flock lock {};
           lock.l_type = F_WRLCK;
           lock.l_whence = SEEK_SET;
           lock.l_start = shared_first;
           lock.l_len = shared_size;
           if (::fcntl(fd, F_GETLK, &lock) != 0) return "cannot ask";
           return lock.l_type != F_UNLCK && lock.l_pid == pid ? "locked" : "free";
         }) == "locked";
}

TEST(SweepDatabaseCrash, ARefusedOrFinishedWriterTakesNoLocksAway) {
  const TemporaryFolder folder;
  const fs::path path = folder / "r.db";
  std::optional<SweepDatabase> reader;
  {
    SweepDatabase database(path, Mode::create, example_header());
    database.write(batch(0));
    ASSERT_TRUE(is_locked_by(path, ::getpid()));
    expect_error(ErrorKind::environment, {"being written"},
                 [&] { SweepDatabase(path, Mode::resume, example_header()); });
    EXPECT_TRUE(is_locked_by(path, ::getpid()));
    reader.emplace(path);
    EXPECT_EQ(reader->count(), batch_size);
    EXPECT_NE(in_child([&] {
                return SweepDatabase(path, Mode::resume, example_header()).path().string();
              }).find("being written"),
              std::string::npos);
  }
  EXPECT_TRUE(is_locked_by(path, ::getpid()));  // the reader's
  SweepDatabase(path, Mode::resume, example_header()).write(batch(1));
  EXPECT_TRUE(is_locked_by(path, ::getpid()));
  EXPECT_EQ(reader->count(), 2 * batch_size);
  reader.reset();
  EXPECT_FALSE(is_locked_by(path, ::getpid()));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"r.db"});
}

// Writes until it is refused, makes room, and goes on with the same object.
std::string fill_up_and_go_on(const fs::path& path, std::string_view word,
                              const std::function<void()>& make_room) {
  std::int64_t number = 0;
  {
    SweepDatabase database(path, Mode::create, example_header());
    for (int attempt = 0; attempt < 3; ++attempt) {
      try {
        for (; number < 10'000; ++number) database.write(batch(number));
        return "the disk was never full";
      } catch (const Error& error) {
        const std::string message = error.what();
        if (error.kind() != ErrorKind::environment || message.find(word) == std::string::npos ||
            message.find(path.string()) == std::string::npos)
          return "unexpected: " + message;
      }
      if (database.count() != number * batch_size) return "a batch is there in part, or lost";
      if (const auto problem = database.integrity(); !problem.empty()) return problem;
    }
    if (number < 2) return "it was full at once";
    make_room();
    for (const std::int64_t end = number + 4; number < end; ++number) database.write(batch(number));
  }
  const SweepDatabase database(path);
  if (const auto problem = database.integrity(); !problem.empty()) return problem;
  if (database.rows(SweepDatabase::Arrays::load) != example_rows(0, number * batch_size))
    return "rows differ";
  return "";
}

TEST(SweepDatabaseCrash, AFileThatMayNotGrowIsAFullDisk) {
  const TemporaryFolder folder;
  EXPECT_EQ(in_child([&] {
              std::signal(SIGXFSZ, SIG_IGN);
              struct rlimit limit {};
              ::getrlimit(RLIMIT_FSIZE, &limit);
              const rlim_t before = std::exchange(limit.rlim_cur, 300'000);
              ::setrlimit(RLIMIT_FSIZE, &limit);
              return fill_up_and_go_on(folder / "r.db", "File too large", [&] {
                limit.rlim_cur = before;
                ::setrlimit(RLIMIT_FSIZE, &limit);
              });
            }),
            "");
}

// A file system of our own, gone with the process. Empty where the machine does not allow it.
constexpr std::string_view not_allowed = "mount is not allowed here";
std::string with_small_disk(const fs::path& folder, const std::function<std::string()>& action) {
  return in_child([&]() -> std::string {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("none", folder.c_str(), "tmpfs", 0, "size=1m") != 0)
      return std::string(not_allowed);
    return action();
  });
}

TEST(SweepDatabaseCrash, AFullDiskLosesNothing) {
  const TemporaryFolder folder;
  const std::string answer = with_small_disk(folder.path(), [&] {
    std::ofstream(folder / "filler") << std::string(500'000, 'x');
    return fill_up_and_go_on(folder / "r.db", "No space left on device",
                             [&] { fs::remove(folder / "filler"); });
  });
  if (answer == not_allowed) GTEST_SKIP() << not_allowed;
  EXPECT_EQ(answer, "");
}

TEST(SweepDatabaseCrash, AFileThatCannotBeMadeIsNotLeftBehind) {
  const TemporaryFolder folder;
  const std::string answer = with_small_disk(folder.path(), [&]() -> std::string {
    std::ofstream(folder / "filler") << std::string(2'000'000, 'x');
    try {
      SweepDatabase(folder / "r.db", Mode::create, example_header());
      return "it was made on a full disk";
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::environment) return error.what();
    }
    if (folder.names() != std::vector<std::string>{"filler"}) return "something is left";
    return "";
  });
  if (answer == not_allowed) GTEST_SKIP() << not_allowed;
  EXPECT_EQ(answer, "");
}

// The message of the Error that `action` throws, or "no error".
std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return (error.kind() == ErrorKind::environment ? "environment: " : "bad input: ") +
           std::string(error.what());
  }
  return "no error";
}

TEST(SweepDatabaseCrash, AReadOnlyDiskCanBeRead) {
  const TemporaryFolder folder;
  const std::string answer = with_small_disk(folder.path(), [&]() -> std::string {
    {
      SweepDatabase database(folder / "r #1.db", Mode::create, example_header());
      database.write(batch(0));
      fs::copy_file(folder / "r #1.db", folder / "log.db");
      fs::copy_file(folder / "r #1.db-wal", folder / "log.db-wal");
    }
    fs::copy_file(folder / "r #1.db", folder / "left.db");
    std::ofstream(folder / "left.db-wal");  // some readers leave an empty log behind
    if (::mount("none", folder.path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0)
      return std::string(not_allowed);
    if (SweepDatabase(folder / "r #1.db").rows(SweepDatabase::Arrays::load) != batch(0)) return "rows differ";
    if (SweepDatabase(folder / "left.db").rows(SweepDatabase::Arrays::load) != batch(0)) return "rows differ";
    for (const Mode mode : {Mode::create, Mode::resume, Mode::overwrite}) {
      const auto message = message_of([&] { SweepDatabase(folder / "r #1.db", mode, example_header()); });
      if (message.find("environment: cannot write") != 0 ||
          message.find("Read-only file system") == std::string::npos)
        return message;
    }
    const auto message = message_of([&] {
      if (SweepDatabase(folder / "log.db").count() != batch_size)
        throw bad_input("rows of the log are missing");
    });
    if (message.find("environment: cannot read") != 0 || message.find("log.db-wal") == std::string::npos)
      return message;
    return "";
  });
  if (answer == not_allowed) GTEST_SKIP() << not_allowed;
  EXPECT_EQ(answer, "");
}

TEST(SweepDatabaseCrash, PermissionsAreRespected) {
  const TemporaryFolder folder;
  const fs::path path = folder / "r.db";
  EXPECT_EQ(in_child([&]() -> std::string {
              constexpr uid_t nobody = 65534;
              if (::geteuid() == 0 && (::chown(folder.path().c_str(), nobody, nobody) != 0 ||
                                       ::setgid(nobody) != 0 || ::setuid(nobody) != 0))
                return "cannot become another user";
              SweepDatabase(path, Mode::create, example_header()).write(batch(0));
              const auto refused = [&]() -> std::string {
                for (const Mode mode : {Mode::create, Mode::resume, Mode::overwrite}) {
                  const auto message = message_of([&] { SweepDatabase(path, mode, example_header()); });
                  if (message != "environment: cannot write " + path.string() + ": Permission denied")
                    return message;
                }
                if (SweepDatabase(path).rows(SweepDatabase::Arrays::load) != batch(0)) return "rows differ";
                if (folder.names() != std::vector<std::string>{"r.db"}) return "something is left";
                return "";
              };
              ::chmod(path.c_str(), 0444);
              if (auto problem = refused(); !problem.empty()) return "file: " + problem;
              ::chmod(path.c_str(), 0644);
              ::chmod(folder.path().c_str(), 0555);
              if (auto problem = refused(); !problem.empty()) return "folder: " + problem;
              ::chmod(folder.path().c_str(), 0755);
              ::chmod(path.c_str(), 0);
              const auto message = message_of([&] { SweepDatabase{path}; });
              if (message != "bad input: cannot read " + path.string() + ": Permission denied")
                return message;
              return "";
            }),
            "");
}

}  // namespace
}  // namespace attmirror
