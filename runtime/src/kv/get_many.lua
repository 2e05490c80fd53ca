-- The values under some keys, if they are not too large together. KEYS: values. ARGV: most bytes; the keys.
local total = 0
for index = 2, #ARGV do
    total = total + redis.call('HSTRLEN', KEYS[1], ARGV[index])
end
if total > tonumber(ARGV[1]) then
    return redis.error_reply('TOOLARGE ' .. string.format('%.0f', total))
end
local found = {}
for index = 2, #ARGV do
    found[index - 1] = redis.call('HGET', KEYS[1], ARGV[index])
end
return found
