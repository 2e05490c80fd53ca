-- A commit of one tenant, behind change.lua. KEYS from the eighth on: where the answer to this commit is kept, if that is to be known; with a fence also the records' values, the order of their keys, their
-- owner, the count of commits with a fence.
-- Further arguments: with a fence its token and the count that is known; most bytes; number of expected, key and version of each; number of listed, bucket and version of each; the changes; with a fence the
-- number of records, key, kind (p, d) and value of each.
-- Answers {"done", version, sum, count}, {"conflict", version, index}, {"full"}, {"number"}, {"overflow"}, {"fenced"} or {"late", time, incarnation}.

-- What was answered once is answered again, whatever has become of the keys meanwhile: a commit that is sent twice is made once.
local known = KEYS[8]
if known then
    local answer = redis.call('LRANGE', known, 0, -1)
    if #answer > 0 then
        return answer
    end
end
local is_late = late()
if is_late then
    return is_late
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

local change, failed = changed(bytes_max)
if failed then
    return answer(failed)
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
local version = make(change)
return answer('done', version, change.sum, count)
