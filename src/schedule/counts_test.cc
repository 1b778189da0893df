#include "schedule/counts.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "schedule/json.h"

namespace unisono {
namespace {

const Counts kTwo{.send = {{0, 5}, {3, 1}}};

// Returns the message after its position.
std::string wrong(std::string_view text) {
  const Parsed<Counts> parsed = parse_counts(text);
  return parsed ? "read" : parsed.position + ": " + parsed.message;
}

TEST(Counts, ReadsTables) {
  for (const char* text : {"0,5\n3,1\n", "0 5\n3 1", "# sent\n\n 0;\t5 \r\n3,1 # rank 1\r\n",
                           "[[0, 5], [3, 1]]", " \n[[0,5],[3,1]]"}) {
    const Parsed<Counts> parsed = parse_counts(text);
    ASSERT_TRUE(parsed) << text << parsed.message;
    EXPECT_EQ(*parsed.value, kTwo) << text;
  }
  EXPECT_EQ(parse_counts("7").value->send, CountRows{{7}});
  EXPECT_EQ(parse_counts("0").value->ranks(), 1);
}

TEST(Counts, ReadsWhatItWrites) {
  Counts counts = kTwo;
  counts.element_bytes = 4096;
  EXPECT_EQ(*parse_counts(to_json(counts)).value, counts);
  counts.receive = {{0, 3}, {5, 2}};
  EXPECT_EQ(*parse_counts(to_json(counts)).value, counts);
}

TEST(Counts, KeepsAll64Bits) {
  const std::int64_t large = 9007199254740993;  // 2^53 + 1 is no double
  EXPECT_EQ(parse_counts("9007199254740993").value->sent(0, 0), large);
  EXPECT_EQ(parse_counts("[[9007199254740993]]").value->sent(0, 0), large);
  EXPECT_EQ(parse_counts("9223372036854775807").value->sent(0, 0), INT64_MAX);
}

TEST(Counts, SayWhatIsWrong) {
  EXPECT_EQ(wrong(""), ": no counts; give one row per rank");
  EXPECT_EQ(wrong("# nothing\n"), ": no counts; give one row per rank");
  EXPECT_EQ(wrong("1,2\n3,4\n5,6\n"),
            "line 1: 2 counts in a table of 3 rows; give one row and one column per rank");
  EXPECT_EQ(wrong("1,2\n\n3\n"),
            "line 3: 1 count in a table of 2 rows; give one row and one column per rank");
  EXPECT_EQ(wrong("1,-2\n3,4\n"), "line 1: \"-2\"; a count must be 0 or more");
  EXPECT_EQ(wrong("1,2\n3,four\n"), "line 2: \"four\" is not a whole number");
  EXPECT_EQ(wrong("1.5"), "line 1: \"1.5\" is not a whole number");
  EXPECT_EQ(wrong("1e3"), "line 1: \"1e3\" is not a whole number");
  EXPECT_EQ(wrong("9223372036854775808"),
            "line 1: \"9223372036854775808\" is more than 2^63-1, the largest count");
  EXPECT_EQ(wrong("0 9223372036854775807\n1 0\n"),
            "line 2: up to here the counts exceed 2^63-1 bytes, at 1 byte per element; give "
            "smaller counts or elements");
}

TEST(Counts, SayWhatIsWrongInJson) {
  EXPECT_EQ(wrong("[]"), ": no counts; give one row per rank");
  EXPECT_EQ(wrong("[1, 2]"), "/0: a number where a row of counts belongs");
  EXPECT_EQ(wrong("[[1, -2], [0, 0]]"), "/0/1: -2; a count must be 0 or more");
  EXPECT_EQ(wrong("[[1, \"2\"], [0, 0]]"), "/0/1: a string where a whole number belongs");
  EXPECT_EQ(wrong("[[1, 2], [0]]"),
            "/1: 1 count in a table of 2 rows; give one row and one column per rank");
  EXPECT_EQ(wrong("[[18446744073709551615]]"),
            "/0/0: a count of more than 2^63-1, the largest one");
  EXPECT_EQ(wrong("[[1.5]]"),
            "/0/0: a number that is not whole, or too large, where a whole number belongs");
  EXPECT_EQ(wrong("[[[1]]]"), "/0/0: an array where a whole number belongs");
  EXPECT_EQ(wrong("{\"send\": [[1]]}"), "/format: missing");
  EXPECT_EQ(wrong("{\"format\": \"unisono.counts/2\"}"),
            "/format: unknown version \"unisono.counts/2\", this reads unisono.counts/1");
  EXPECT_EQ(wrong("{\"format\": \"unisono.counts/1\"}"), "/send: no counts; give one row per rank");
  EXPECT_EQ(wrong("{\"format\": \"unisono.counts/1\", \"element_bytes\": 0, \"send\": [[1]]}"),
            "/element_bytes: 0; an element must have 1 to 2^30 bytes");
  EXPECT_EQ(wrong("{\"format\": \"unisono.counts/1\", \"send\": [[1]], \"receive\": [[1], [2]]}"),
            "/receive: 2 rows, but there is 1 rank; give one per rank");
  EXPECT_EQ(wrong("{\"format\": \"unisono.counts/1\", \"sent\": [[1]]}"),
            "/: unknown key \"sent\"; known are format, element_bytes, send, receive");
}

// Any text is either refused with a message, or gives valid counts that can be read back.
TEST(Counts, OfAnyTextAreRightOrRefused) {
  std::mt19937 random(21);
  const std::string_view letters = "0123456789[]{},;:-.e\"\n #\tsendreceiveformat";
  const std::string seeds[] = {"0,5\n3,1\n", "[[0, 5], [3, 1]]",
                               to_json({.element_bytes = 9, .send = {{1, 2}, {3, 4}}})};
  int read = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = seeds[random() % 3];
    for (auto left = random() % 3; left > 0; --left) {
      text[random() % text.size()] = letters[random() % letters.size()];
    }
    text.resize(random() % 4 == 0 ? random() % (text.size() + 1) : text.size());
    const Parsed<Counts> parsed = parse_counts(text);
    if (!parsed) {
      ASSERT_FALSE(parsed.message.empty()) << text;
      continue;
    }
    ++read;
    ASSERT_TRUE(check_counts(*parsed.value).message.empty()) << text;
    ASSERT_EQ(*parse_counts(to_json(*parsed.value)).value, *parsed.value) << text;
  }
  EXPECT_GT(read, 1000);
}

TEST(Counts, TotalsNameTheBusiest) {
  const CountTotals totals = totals_of({.send = {{1, 5, 0}, {3, 1, 0}, {9, 0, 0}}});
  EXPECT_EQ(totals.all, 19);
  EXPECT_EQ(totals.most_sent, 9);
  EXPECT_EQ(totals.busiest_sender, 2);
  EXPECT_EQ(totals.most_received, 13);
  EXPECT_EQ(totals.busiest_receiver, 0);
  EXPECT_EQ(totals.largest, 9);
}

Schedule uneven_exchange() {
  Schedule schedule{.collective = Collective::all_to_all, .ranks = 2, .chunks = 4, .steps = 1};
  schedule.moves = {{.from = 0, .to = 1, .chunk = 1, .source = Buffer::input},
                    {.from = 1, .to = 0, .chunk = 2, .source = Buffer::input}};
  schedule.counts = kTwo;
  return schedule;
}

TEST(Counts, TravelWithASchedule) {
  Schedule schedule = uneven_exchange();
  EXPECT_EQ(parse_schedule_json(to_json(schedule)).value->counts, kTwo);
  schedule.counts.element_bytes = 2048;
  schedule.counts.receive = {{0, 3}, {5, INT64_MAX / 4096}};
  EXPECT_EQ(parse_schedule_json(to_json(schedule)).value->counts, schedule.counts);
  schedule.counts = {};
  EXPECT_TRUE(parse_schedule_json(to_json(schedule)).value->counts.empty());
}

TEST(Counts, OfAScheduleAreChecked) {
  const auto wrong_with = [](const std::string& counts) {
    std::string text = to_json(uneven_exchange());
    text.replace(text.find("\"counts\": {"), std::string::npos, "\"counts\": " + counts + "}");
    const Parsed<Schedule> parsed = parse_schedule_json(text);
    return parsed ? "read" : parsed.position + ": " + parsed.message;
  };
  EXPECT_EQ(wrong_with("{\"send\": [[0, 1], [2, 3]]}"), "read");
  EXPECT_EQ(wrong_with("{}"), "/counts/send: missing");
  EXPECT_EQ(wrong_with("{\"send\": []}"), "/counts/send: no counts; give one row per rank");
  EXPECT_EQ(wrong_with("{\"send\": [0, 1]}"),
            "/counts/send/0: a number where a row of counts belongs");
  EXPECT_EQ(wrong_with("{\"send\": [[0, null], [1, 2]]}"),
            "/counts/send/0/1: null where a whole number belongs");
  EXPECT_EQ(wrong_with("{\"send\": [[0, [1]], [1, 2]]}"),
            "/counts/send/0/1: an array where a whole number belongs");
  EXPECT_EQ(wrong_with("{\"send\": [[0, -1], [1, 2]]}"),
            "/counts/send/0/1: -1; a count must be 0 or more");
  EXPECT_EQ(wrong_with("{\"send\": [[0, 1], [1]]}"),
            "/counts/send/1: 1 count in a table of 2 rows; give one row and one column per rank");
  EXPECT_EQ(wrong_with("{\"send\": [[1]]}"), "/counts/send: counts for 1, but there are 2 ranks");
  EXPECT_EQ(wrong_with("{\"send\": [[0, 1], [2, 3]], \"element_bytes\": 0}"),
            "/counts/element_bytes: 0 is not in 1..1073741824");
  EXPECT_EQ(wrong_with("[[0, 1]]"), "/counts: an array where an object belongs");
  Schedule odd = uneven_exchange();
  odd.chunks = 5;
  EXPECT_EQ(parse_schedule_json(to_json(odd)).message,
            "5, but with counts it is a multiple of 4, the blocks");
  Schedule reduce{.collective = Collective::all_reduce, .ranks = 2};
  reduce.counts = kTwo;
  EXPECT_EQ(parse_schedule_json(to_json(reduce)).message,
            "only all_to_all has counts; leave them out");
}

}  // namespace
}  // namespace unisono
