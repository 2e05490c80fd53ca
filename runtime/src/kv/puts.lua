-- Commits of one tenant that expect nothing, one after the other, behind change.lua. Further arguments: most bytes, the number of commits, the changes of each.
-- Answers a list with what commit.lua answers to each; or with {"late", time, incarnation} alone.
local is_late = late()
if is_late then
    return { is_late }
end
local bytes_max = tonumber(argument())
local answers = {}
for index = 1, tonumber(argument()) do
    local change, failed = changed(bytes_max)
    if failed then
        answers[index] = { failed }
    else
        local version = make(change)
        answers[index] = { 'done', version, change.sum }
    end
end
return answers
