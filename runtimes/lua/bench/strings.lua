-- String buffers: lines of text are put together, cut up, changed by replacements, and kept for a
-- while.
local rounds = tonumber(arg[1]) or 60

local kept, bytes = {}, 0
for round = 1, rounds do
  local parts = {}
  for n = 1, 4000 do
    parts[#parts + 1] = ("%d: the %d-th line of round %d, with a number: %.3f"):format(n, n * 7, round, n / 7)
  end
  local text = table.concat(parts, "\n")
  local words = {}
  for word in text:gmatch("%a+") do words[word] = (words[word] or 0) + 1 end
  local upper = text:gsub("line", "LINE"):upper()
  local lines = {}
  for line in upper:gmatch("[^\n]+") do lines[#lines + 1] = line:sub(1, 30) .. "|" .. line:reverse() end
  kept[round % 20] = lines
  bytes = bytes + #text + words["line"]
end
print(bytes, #kept)
