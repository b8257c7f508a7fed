-- Edits and completions by a lookup-spec service. See :help lookup-spec
local complete = require('lookup_spec.complete')
local edit = require('lookup_spec.edit')
local service = require('lookup_spec.service')

local M = { edit = edit, complete = complete }

--- Sets what is given; the rest is as the environment says, or as usual.
--- @param options table|nil url, key, complete (boolean: ghost text while typing), accept_key (takes it)
function M.setup(options)
  options = options or {}
  service.url = (options.url or vim.env.LOOKUP_SPEC_URL or 'http://127.0.0.1:8012'):gsub('/+$', '')
  service.key = options.key or vim.env.LOOKUP_SPEC_API_KEY or ''
  local group = vim.api.nvim_create_augroup('lookup_spec', { clear = true })
  vim.api.nvim_create_autocmd({ 'InsertLeave', 'BufLeave' }, { group = group, callback = complete.clear })
  if options.complete then
    vim.api.nvim_create_autocmd({ 'TextChangedI', 'CursorMovedI' }, { group = group, callback = complete.ask_soon })
  end
  if options.accept_key then
    vim.keymap.set('i', options.accept_key, function()
      return complete.accept() and '' or options.accept_key
    end, { expr = true, replace_keycodes = true, desc = 'lookup-spec: accept the ghost text' })
  end
end

M.setup()

return M
