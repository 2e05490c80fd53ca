-- A commit of one tenant. KEYS: values, order, version, bytes, scratch.
-- ARGV: most bytes; number of expected, key and version of each; number of changes, key, kind (p, d, a) and argument of each.
-- Answers {"done", version, sum}, {"conflict", version}, {"full"}, {"number"} or {"overflow"}. A stored value is VERSION:VALUE.
local OVERHEAD = 128
local values, order, counter, used, scratch = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local at = 0
local function argument()
    at = at + 1
    return ARGV[at]
end
local function split(stored)
    local colon = string.find(stored, ':', 1, true)
    return string.sub(stored, 1, colon - 1), string.sub(stored, colon + 1)
end

local bytes_max = tonumber(argument())
for _ = 1, tonumber(argument()) do
    local key, expected = argument(), argument()
    local stored = redis.call('HGET', values, key)
    local version = stored and split(stored) or '0'
    if version ~= expected then
        return { 'conflict', version }
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
            return { string.find(added.err, 'overflow', 1, true) and 'overflow' or 'number' }
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
    return { 'full' }
end

if #keys == 0 then
    return { 'done', redis.call('GET', counter) or '0', sum }
end
redis.call('INCR', counter)
local version = redis.call('GET', counter)
for _, key in ipairs(keys) do
    if after[key] then
        redis.call('HSET', values, key, version .. ':' .. after[key])
        redis.call('ZADD', order, 0, key)
    else
        redis.call('HDEL', values, key)
        redis.call('ZREM', order, key)
    end
end
redis.call('SET', used, string.format('%.0f', total))
return { 'done', version, sum }
