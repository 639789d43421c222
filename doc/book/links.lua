-- For pandoc: a page of the book is a file of HTML there.
function Link(link)
	link.target = link.target:gsub("^([%w_-]+)%.md", "%1.html")
	return link
end
