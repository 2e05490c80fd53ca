-- What scripts have in common that change one tenant's entries; the scripts stand behind it. KEYS: values, order, version, bytes, scratch, buckets; which incarnation of the store this is, if what is
-- changed may be changed until some time only. A stored value is VERSION:VALUE.
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
-- Arguments: how many buckets are remembered; for how many milliseconds answers are kept, until when the changes may be made, which incarnation they are for and what a new one is called, if they name a time;
-- the first version there may be, and by how much the next one is larger.
local buckets_max, kept, not_after = tonumber(argument()), tonumber(argument()), tonumber(argument())
local expected_incarnation, new_incarnation = argument(), argument()
local first, step = argument(), argument()

-- {"late", time, incarnation}, if it is too late for the changes.
local function late()
    if not KEYS[7] then
        return nil
    end
    -- What comes later, or to a store that was emptied, might have been made, and its answer forgotten; of what may be made for long, the answer would have to be kept for long.
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

-- What becomes of the keys by the changes that are the next arguments: their number, then key, kind (p, d, a) and argument of each. Or nothing, and why they cannot be made: "number", "overflow" or "full".
local function changed(bytes_max)
    local keys, before, after, sum, failed = {}, {}, {}, '0', nil
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
        elseif not failed then
            -- Numbers of this language have 53 bits, those of INCRBY 64.
            redis.call('SET', scratch, after[key] or '0')
            local added = redis.pcall('INCRBY', scratch, value)
            sum = redis.call('GET', scratch)
            redis.call('DEL', scratch)
            if type(added) == 'table' and added.err then
                failed = string.find(added.err, 'overflow', 1, true) and 'overflow' or 'number'
            end
            after[key] = sum
        end
    end
    if failed then
        return nil, failed
    end
    local more = 0
    for _, key in ipairs(keys) do
        more = more + (after[key] and #key + #after[key] + OVERHEAD or 0) - (before[key] and #key + #before[key] + OVERHEAD or 0)
    end
    local total = tonumber(redis.call('GET', used) or '0') + more
    if more > 0 and total > bytes_max then
        return nil, 'full'
    end
    return { keys = keys, before = before, after = after, sum = sum, total = total }
end

-- Makes that of the keys. Returns the version.
local function make(change)
    local before, after = change.before, change.after
    if #change.keys == 0 then
        return redis.call('GET', counter) or '0'
    end
    -- By chance: a store that was emptied, or has lost commits with the server that had them, does not give the same versions to other commits.
    redis.call('SETNX', counter, first)
    redis.call('INCRBY', counter, step)
    local version = redis.call('GET', counter)
    for _, key in ipairs(change.keys) do
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
    redis.call('SET', used, string.format('%.0f', change.total))
    return version
end

