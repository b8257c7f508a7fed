-- Server-sent events out of text, however it is cut. Knows nothing of Neovim's interface.
local M = {}

--- A parser; feed it text, and it calls `take` with the data of each event.
--- @param take function(data: string)
function M.parser(take)
  local rest = ''
  return function(text)
    rest = rest .. text
    while true do
      local stop = rest:find('\n', 1, true)
      if not stop then
        return
      end
      local line = rest:sub(1, stop - 1)
      rest = rest:sub(stop + 1)
      local data = line:match('^data: (.*)$')
      if data then
        take(data)
      end
    end
  end
end

return M
