// Carries out the lines of its input on the bucket that its first argument names, and replies with a line for each. Words are separated by one space.
#include "../../../sdk/c/sledge.h"

#include <stdio.h>

#define WORDS_MAX 64
#define BYTES_MAX (2 << 20)

static char input[BYTES_MAX], value[BYTES_MAX];

static void tell(const char *what, int32_t result, uint64_t version) {
    if (result < 0) {
        printf("error %d\n", -result);
    } else {
        printf("%s %d %llu\n", what, result, (unsigned long long)version);
    }
}

static void list(int32_t bucket, char **words, size_t capacity) {
    char after[1024] = "";
    size_t after_length = 0;
    const size_t prefix = strlen(words[1]);
    int32_t count;
    printf("keys");
    while ((count = sledge_kv_list_keys(bucket, words[1], prefix, after, after_length, value, capacity)) > 0) {
        const char *next = value;
        printf(" |");
        for (int32_t index = 0; index < count; index++) {
            uint32_t length;
            memcpy(&length, next, 4);
            printf(" %.*s", (int)length, next + 4);
            memcpy(after, next + 4, length);
            after_length = length;
            next += 4 + length;
        }
    }
    printf(count < 0 ? " error\n" : "\n");
}

static void get_many(int32_t bucket, char **words, size_t count) {
    sledge_kv_key keys[WORDS_MAX];
    sledge_kv_found found[WORDS_MAX];
    for (size_t index = 0; index < count; index++) {
        keys[index] = (sledge_kv_key){words[index], strlen(words[index])};
    }
    const int32_t bytes = sledge_kv_get_many(bucket, keys, count, found, value, sizeof value);
    printf("values %d", bytes);
    for (size_t index = 0; index < count; index++) {
        if (found[index].length == SLEDGE_KV_NOTHING) {
            printf(" -");
        } else {
            printf(" %.*s", (int)found[index].length, value + found[index].offset);
        }
    }
    printf("\n");
}

// Words are KEY=VERSION (expected), KEY:VALUE (put), KEY! (deleted).
static int32_t commit(int32_t bucket, char **words, size_t count, uint64_t *version) {
    sledge_kv_expected expected[WORDS_MAX];
    sledge_kv_pair changes[WORDS_MAX];
    size_t expected_count = 0, change_count = 0;
    for (size_t index = 0; index < count; index++) {
        char *word = words[index];
        const size_t key = strcspn(word, "=:!");
        if (word[key] == '=') {
            expected[expected_count++] = (sledge_kv_expected){word, key, strtoull(word + key + 1, NULL, 10)};
        } else if (word[key] == ':') {
            changes[change_count++] = (sledge_kv_pair){word, key, word + key + 1, strlen(word + key + 1)};
        } else {
            changes[change_count++] = (sledge_kv_pair){word, key, NULL, SLEDGE_KV_NOTHING};
        }
    }
    return sledge_kv_commit(bucket, expected, expected_count, changes, change_count, version);
}

static void line(int32_t bucket, char **words, size_t count) {
    const char *what = words[0], *key = count > 1 ? words[1] : "";
    const size_t length = strlen(key);
    uint64_t version = 0;
    if (strcmp(what, "get") == 0) {
        const int32_t got = sledge_kv_get(bucket, key, length, value, sizeof value, &version);
        if (got < 0) {
            printf("error %d\n", -got);
        } else {
            printf("%llu %.*s\n", (unsigned long long)version, (int)got, value);
        }
    } else if (strcmp(what, "set") == 0) {
        tell("set", sledge_kv_set(bucket, key, length, words[2], strlen(words[2]), &version), version);
    } else if (strcmp(what, "fill") == 0) {
        const size_t bytes = strtoul(words[2], NULL, 10);
        memset(value, 'x', bytes);
        tell("fill", sledge_kv_set(bucket, key, length, value, bytes, &version), version);
    } else if (strcmp(what, "delete") == 0) {
        tell("delete", sledge_kv_delete(bucket, key, length), 0);
    } else if (strcmp(what, "exists") == 0) {
        tell("exists", sledge_kv_exists(bucket, key, length), 0);
    } else if (strcmp(what, "add") == 0) {
        int64_t sum = 0;
        const int32_t added = sledge_kv_increment(bucket, key, length, strtoll(words[2], NULL, 10), &sum);
        printf(added < 0 ? "error %lld\n" : "sum %lld\n", added < 0 ? -(long long)added : (long long)sum);
    } else if (strcmp(what, "swap") == 0) {
        const uint64_t expected = strtoull(words[2], NULL, 10);
        tell("swap", sledge_kv_compare_and_swap(bucket, key, length, expected, words[3], strlen(words[3]), &version), version);
    } else if (strcmp(what, "list") == 0) {
        list(bucket, words, strtoul(words[2], NULL, 10));
    } else if (strcmp(what, "values") == 0) {
        get_many(bucket, words + 1, count - 1);
    } else if (strcmp(what, "commit") == 0) {
        tell("commit", commit(bucket, words + 1, count - 1, &version), version);
    } else if (strcmp(what, "fault") == 0) {
        const void *nowhere = (const void *)0xfffffff0;
        tell("fault", sledge_kv_get(bucket, nowhere, 8, value, 8, NULL), 0);
        tell("fault", sledge_kv_set(bucket, "k", 1, nowhere, 1 << 20, NULL), 0);
        tell("fault", sledge_kv_set(bucket, "k", 1, "v", 1, (uint64_t *)nowhere + 1), 0);
        tell("fault", sledge_kv_commit(bucket, nowhere, 1000, NULL, 0, NULL), 0);
        tell("fault", sledge_kv_get(bucket + 7, "k", 1, value, 8, NULL), 0);
        tell("fault", sledge_kv_get_many(bucket, nowhere, 0xffffffff, NULL, value, 8), 0);
    } else {
        printf("what?\n");
    }
}

int main(int argc, char **argv) {
    size_t length;
    if (sledge_read_body(input, sizeof input - 1, &length) != SLEDGE_OK) {
        return 1;
    }
    const int32_t bucket = sledge_kv_open(argv[argc - 1], strlen(argv[argc - 1]));
    if (bucket < 0) {
        printf("error %d\n", -bucket);
        return 0;
    }
    for (char *next = input; *next != 0;) {
        char *words[WORDS_MAX];
        size_t count = 0;
        char *end = next + strcspn(next, "\n");
        char *rest = *end == 0 ? end : end + 1;
        *end = 0;
        for (char *word = strtok(next, " "); word != NULL && count < WORDS_MAX; word = strtok(NULL, " ")) {
            words[count++] = word;
        }
        if (count > 0) {
            line(bucket, words, count);
        }
        next = rest;
    }
    return 0;
}
