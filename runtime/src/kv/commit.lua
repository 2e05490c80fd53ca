-- A commit of one tenant. KEYS: values, order, version, bytes, scratch, buckets; which incarnation of the store this is, if the commit may be made until some time only; where the answer to this commit is kept,
-- if that is to be known; with a fence also the records' values, the order of their keys, their owner, the count of commits with a fence.
-- ARGV: how many buckets are remembered; for how many milliseconds the answer is kept, until when the commit may be made, which incarnation it is for and what a new one is called, if it names a time; the first version there may be, and by how much the next one is larger; with a fence its token and the count that is
-- known; most bytes; number of expected, key and version of each; number of listed, bucket and version of each; number of changes, key, kind (p, d, a) and argument of each; with a fence the number
-- of records, key, kind (p, d) and value of each.
-- Answers {"done", version, sum, count}, {"conflict", version, index}, {"full"}, {"number"}, {"overflow"}, {"fenced"} or {"late", time, incarnation}. A stored value is VERSION:VALUE.
local OVERHEAD = 128
local values, order, counter, used, scratch, buckets = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local at = 0
local function argument()
    at = at + 1
    return ARGV[at]
end
local function split(stored)
    local colon = string.find(stored, ':', 1, true)
    return string.sub(stored, 1, colon - 1), string.sub(stored, colon + 1)
end

local buckets_max, kept, not_after = tonumber(argument()), tonumber(argument()), tonumber(argument())
local expected_incarnation, new_incarnation = argument(), argument()
local first, step = argument(), argument()
-- What was answered once is answered again, whatever has become of the keys meanwhile: a commit that is sent twice is made once.
local known = KEYS[8]
if known then
    local answer = redis.call('LRANGE', known, 0, -1)
    if #answer > 0 then
        return answer
    end
end
if KEYS[7] then
    -- One that comes later, or to a store that was emptied, might have been made, and its answer forgotten; of one that may be made for long, the answer would have to be kept for long.
    local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    local incarnation = redis.call('GET', KEYS[7])
    if not incarnation then
        incarnation = new_incarnation
        redis.call('SET', KEYS[7], incarnation)
    end
    if incarnation ~= expected_incarnation or now > not_after or not_after > now + 2 * kept then
        return { 'late', string.format('%.0f', now), incarnation }
    end
end
local function answer(...)
    local words = { ... }
    if known then
        redis.call('RPUSH', known, unpack(words))
        redis.call('PEXPIREAT', known, string.format('%.0f', not_after + kept))
    end
    return words
end

local is_fenced = KEYS[9] ~= nil
if is_fenced then
    -- Nothing is kept of this answer: the token is not used again.
    local token, seen = argument(), tonumber(argument())
    if redis.call('GET', KEYS[11]) ~= token or tonumber(redis.call('GET', KEYS[12]) or '0') < seen then
        return { 'fenced' }
    end
end

local bytes_max = tonumber(argument())
local expectations = tonumber(argument())
for index = 1, expectations do
    local key, expected = argument(), argument()
    local stored = redis.call('HGET', values, key)
    local version = stored and split(stored) or '0'
    if version ~= expected then
        return answer('conflict', version, tostring(index - 1))
    end
end
for index = 1, tonumber(argument()) do
    local bucket, expected = argument(), argument()
    local version = redis.call('HGET', buckets, bucket) or redis.call('HGET', buckets, '') or '0'
    if version ~= expected then
        return answer('conflict', version, tostring(expectations + index - 1))
    end
end

local keys, before, after, sum = {}, {}, {}, '0'
for _ = 1, tonumber(argument()) do
    local key, kind, value = argument(), argument(), argument()
    if after[key] == nil then
        local stored = redis.call('HGET', values, key)
        before[key] = stored and select(2, split(stored))
        after[key] = before[key]
        table.insert(keys, key)
    end
    if kind == 'p' then
        after[key] = value
    elseif kind == 'd' then
        after[key] = false
    else
        -- Numbers of this language have 53 bits, those of INCRBY 64.
        redis.call('SET', scratch, after[key] or '0')
        local added = redis.pcall('INCRBY', scratch, value)
        sum = redis.call('GET', scratch)
        redis.call('DEL', scratch)
        if type(added) == 'table' and added.err then
            return answer(string.find(added.err, 'overflow', 1, true) and 'overflow' or 'number')
        end
        after[key] = sum
    end
end

local more = 0
for _, key in ipairs(keys) do
    more = more + (after[key] and #key + #after[key] + OVERHEAD or 0) - (before[key] and #key + #before[key] + OVERHEAD or 0)
end
local total = tonumber(redis.call('GET', used) or '0') + more
if more > 0 and total > bytes_max then
    return answer('full')
end

local count
if is_fenced then
    for _ = 1, tonumber(argument()) do
        local key, kind, value = argument(), argument(), argument()
        if kind == 'p' then
            redis.call('HSET', KEYS[9], key, value)
            redis.call('ZADD', KEYS[10], 0, key)
        else
            redis.call('HDEL', KEYS[9], key)
            redis.call('ZREM', KEYS[10], key)
        end
    end
    redis.call('INCR', KEYS[12])
    count = redis.call('GET', KEYS[12])
end
if #keys == 0 then
    return answer('done', redis.call('GET', counter) or '0', sum, count)
end
-- By chance: a store that was emptied, or has lost commits with the server that had them, does not give the same versions to other commits.
redis.call('SETNX', counter, first)
redis.call('INCRBY', counter, step)
local version = redis.call('GET', counter)
for _, key in ipairs(keys) do
    if (before[key] and true or false) ~= (after[key] and true or false) then
        -- Under the empty name, which no bucket has: the version of all that were forgotten.
        if redis.call('HLEN', buckets) > buckets_max then
            redis.call('DEL', buckets)
            redis.call('HSET', buckets, '', version)
        end
        redis.call('HSET', buckets, string.match(key, '^[^%z]*'), version)
    end
    if after[key] then
        redis.call('HSET', values, key, version .. ':' .. after[key])
        redis.call('ZADD', order, 0, key)
    else
        redis.call('HDEL', values, key)
        redis.call('ZREM', order, key)
    end
end
redis.call('SET', used, string.format('%.0f', total))
return answer('done', version, sum, count)
