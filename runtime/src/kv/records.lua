-- A page of records. KEYS: values, order. ARGV: r(ising) or f(alling), the lower and the upper bound of the keys, most keys, most bytes (but one record is always there),
-- bytes of each value that are wanted (all, if that is less than zero).
-- Answers whether there may be more behind the last one (1 or 0), then keys and values.
local head = tonumber(ARGV[6])
local keys
if ARGV[1] == 'r' then
    keys = redis.call('ZRANGEBYLEX', KEYS[2], ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])
else
    keys = redis.call('ZREVRANGEBYLEX', KEYS[2], ARGV[3], ARGV[2], 'LIMIT', 0, ARGV[4])
end
local page, bytes = { #keys == tonumber(ARGV[4]) and '1' or '0' }, 0
for index, key in ipairs(keys) do
    local length = redis.call('HSTRLEN', KEYS[1], key)
    if head >= 0 and length > head then
        length = head
    end
    bytes = bytes + #key + length
    if index > 1 and bytes > tonumber(ARGV[5]) then
        page[1] = '1'
        break
    end
    local value = head ~= 0 and redis.call('HGET', KEYS[1], key) or ''
    page[2 * index] = key
    page[2 * index + 1] = head >= 0 and string.sub(value, 1, head) or value
end
return page
