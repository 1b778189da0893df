#include "network_model/table.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace unisono::network_model {
namespace {

constexpr const char* kHead = "machine,collective,dtype,ranks,bytes,time_us,source\n";

TEST(Table, ReadsQuotesBlanksCommentsAndAnyOrderOfColumns) {
  const auto parsed = parse_table(
      "# from somewhere\r\n"
      "time_us, bytes ,ranks,collective,note,algorithm\r\n"
      "\n"
      "12.5,64,4,all_gather,\"a, \"\"quoted\"\" note\",ring\r\n"
      "1e3,0,2,barrier,,\n");
  ASSERT_TRUE(parsed) << parsed.message;
  ASSERT_EQ(parsed.value->rows.size(), 2U);
  const cost::Point& first = parsed.value->rows[0].point;
  EXPECT_EQ(first.collective, Collective::all_gather);
  EXPECT_EQ(first.algorithm, "ring");
  EXPECT_EQ(first.ranks, 4);
  EXPECT_EQ(first.bytes, 64);
  EXPECT_DOUBLE_EQ(first.time_s, 12.5e-6);
  EXPECT_EQ(parsed.value->rows[1].point.algorithm, "");
}

TEST(Table, BeginsWithAByteOrderMarkOrWithout) {
  const std::string text = "collective,ranks,bytes,time_us\nall_reduce,4,8,2.5\n";
  for (const std::string& mark : {std::string(), std::string("\xef\xbb\xbf")}) {
    const auto table = parse_table(mark + text);
    ASSERT_TRUE(table) << table.position << ": " << table.message;
    EXPECT_EQ(table.value->rows.size(), 1U);
  }
}

TEST(Table, GroupsByMachine) {
  const auto parsed = parse_table(std::string(kHead) +
                                  "b,all_reduce,f32,2,8,1,x\n"
                                  "a,all_reduce,f32,2,8,2,x\n"
                                  "b,all_reduce,f32,4,8,3,x\n");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed.value->machines(), (std::vector<std::string>{"b", "a"}));
  EXPECT_EQ(parsed.value->points("b").size(), 2U);
  EXPECT_EQ(parsed.value->points("a").size(), 1U);
}

TEST(Table, SurvivesEveryMutation) {
  const std::string right = std::string(kHead) +
                            "a,all_reduce,f32,2,8,1.5,\"x, \"\"y\"\"\"\n"
                            "b,all_gather,f32,4,1e3,2,z\n";
  std::mt19937_64 random(7);
  int read = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = right;
    for (int i = 0; i < 2; ++i) {
      const std::size_t place = random() % text.size();
      if (random() % 2 == 0) {
        text[place] = "0123456789-e.,\"\n\r#\0\xff"[random() % 20];
      } else {
        text.erase(place, 1 + random() % 4);
      }
    }
    const auto parsed = parse_table(text);
    ASSERT_NE(static_cast<bool>(parsed), !parsed.message.empty());
    read += parsed ? 1 : 0;
  }
  EXPECT_GT(read, 0);
}

struct Mistake {
  const char* rows;
  const char* message;
  const char* position;
};

TEST(Table, SaysWhatIsWrongAndWhere) {
  const Mistake mistakes[] = {
      {"m,all_reduce,f32,2,8,1,x\nm,all_redcue,f32,2,8,1,x\n", "unknown collective \"all_redcue\"",
       "line 3"},
      {"m,all_reduce,f32,two,8,1,x\n", "\"two\" is not a number of ranks", "line 2"},
      {"m,all_reduce,f32,2.5,8,1,x\n", "\"2.5\" is not a number of ranks", "line 2"},
      {"m,all_reduce,f32,0,8,1,x\n", "\"0\" is not a number of ranks", "line 2"},
      {"m,all_reduce,f32,2,-8,1,x\n", "\"-8\" is not a number of bytes", "line 2"},
      {"m,all_reduce,f32,2,nan,1,x\n", "\"nan\" is not a number of bytes", "line 2"},
      {"m,all_reduce,f32,2,8,0,x\n", "\"0\" is not a time in microseconds", "line 2"},
      {"m,all_reduce,f32,2,8,1e-300,x\n", "\"1e-300\" is not a time in microseconds", "line 2"},
      {"m,all_reduce,f32,2,1e300,1,x\n", "\"1e300\" is not a number of bytes", "line 2"},
      {"m,all_reduce,f32,2,8,,x\n", "\"\" is not a time in microseconds", "line 2"},
      {"m,all_reduce,f32,2,8,1\n", "6 fields, but the first line names 7 columns", "line 2"},
      {"m,all_reduce,f32,2,8,1,\"x\n", "a double quote is not closed", "line 2"},
      {"", "there are no measurements", "line 1"},
  };
  for (const Mistake& mistake : mistakes) {
    const auto parsed = parse_table(std::string(kHead) + mistake.rows);
    EXPECT_FALSE(parsed);
    EXPECT_EQ(parsed.message, mistake.message);
    EXPECT_EQ(parsed.position, mistake.position) << mistake.message;
  }
  EXPECT_EQ(parse_table("collective,ranks,bytes\n").message,
            "there is no column 'time_us': the first line must name it");
  EXPECT_EQ(parse_table("collective,ranks,bytes,time_us,algorithm\nbarrier,2,0,1,rign\n").message,
            "barrier has no algorithm \"rign\"");
  EXPECT_EQ(parse_table("collective,ranks,bytes,time_us,wait\nbarrier,2,0,1,soon\n").message,
            "\"soon\" is not a wait policy, such as \"spin=3000,yield_us=500\"");
  EXPECT_EQ(
      parse_table("collective,ranks,bytes,time_us,oversubscribed\nbarrier,2,0,1,yes\n").message,
      "\"yes\" is neither 0 (one CPU per rank) nor 1 (oversubscribed)");
  for (const char* threads : {"0", "257", "1.5", "x"}) {
    EXPECT_EQ(parse_table("collective,ranks,bytes,time_us,threads\nbroadcast,2,8,1," +
                          std::string(threads) + "\n")
                  .message,
              "\"" + std::string(threads) + "\" is not a number of threads");
  }
}

TEST(Table, RowsWithThreadsAreNoPoints) {
  const auto parsed = parse_table(
      "collective,ranks,bytes,time_us,threads\nbroadcast,2,8,1,\nbroadcast,2,8,2,256\n");
  ASSERT_TRUE(parsed) << parsed.message;
  EXPECT_EQ(parsed.value->rows[0].threads, 0);
  EXPECT_EQ(parsed.value->rows[1].threads, 256);
  EXPECT_EQ(parsed.value->points("").size(), 1U);
}

// Each machine is fitted, so a table with a machine per row would take hours.
TEST(Table, RefusesTooManyMachines) {
  std::string text = kHead;
  for (int i = 0; i <= 1000; ++i) {
    text += "m" + std::to_string(i) + ",all_reduce,f32,2,8,1,x\n";
  }
  const auto parsed = parse_table(text);
  EXPECT_EQ(parsed.message, "more than 1000 machines");
  EXPECT_EQ(parsed.position, "line 1002");
}

TEST(Table, AccountsForItsRowsAndColumns) {
  const auto parsed =
      parse_table("machine,collective,dtype,ranks,bytes,time_us,source\na,barrier,,2,0,1,x\n");
  ASSERT_TRUE(parsed) << parsed.message;
  EXPECT_EQ(parsed.value->account.used, 1);
  EXPECT_EQ(parsed.value->account.assumed,
            std::vector<std::string>{"the columns \"dtype\", \"source\" are for people"});
  EXPECT_EQ(parse_table("collective,ranks,bytes,time_us,bytes\n").message,
            "there are two columns \"bytes\"");
  EXPECT_EQ(parse_table("collective" + std::string(2'000, ',') + "\n").message,
            "more than 1000 columns");
}

}  // namespace
}  // namespace unisono::network_model
