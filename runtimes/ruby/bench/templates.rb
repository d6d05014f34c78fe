# A small template language, compiled to a tree of nodes and rendered against hashes, as for the
# pages of a shop.
class Template
  Text = Struct.new(:text) { def render(_, out) = out << text }
  Output = Struct.new(:path, :filters) do
    def render(context, out)
      value = path.inject(context) { |at, name| at.is_a?(Hash) ? at[name] : at.respond_to?(name) ? at.public_send(name) : nil }
      filters.each do |name, argument|
        value = case name
                when "upcase" then value.to_s.upcase
                when "truncate" then value.to_s[0, argument.to_i] + "..."
                when "money" then format("$%.2f", value.to_f)
                when "escape" then value.to_s.gsub(/[&<>"]/, "&" => "&amp;", "<" => "&lt;", ">" => "&gt;", '"' => "&quot;")
                else value
                end
      end
      out << value.to_s
    end
  end
  For = Struct.new(:name, :path, :body) do
    def render(context, out)
      items = path.inject(context) { |at, name| at && at[name] } || []
      items.each_with_index do |item, index|
        inner = context.merge(name => item, "forloop" => { "index" => index + 1, "last" => index == items.size - 1 })
        body.each { |node| node.render(inner, out) }
      end
    end
  end
  If = Struct.new(:path, :body) do
    def render(context, out)
      body.each { |node| node.render(context, out) } if path.inject(context) { |at, name| at && at[name] }
    end
  end

  def initialize(source)
    tokens = source.split(/(\{\{.*?\}\}|\{%.*?%\})/m)
    @nodes = parse(tokens)
  end

  def parse(tokens)
    nodes = []
    while (token = tokens.shift)
      case token
      when /\A\{\{\s*([\w.]+)((?:\s*\|\s*\w+(?::\s*\w+)?)*)\s*\}\}\z/
        path, filters = $1.split("."), $2
        nodes << Output.new(path, filters.scan(/(\w+)(?::\s*(\w+))?/))
      when /\A\{%\s*for\s+(\w+)\s+in\s+([\w.]+)\s*%\}\z/
        nodes << For.new($1, $2.split("."), parse(tokens))
      when /\A\{%\s*if\s+([\w.]+)\s*%\}\z/
        nodes << If.new($1.split("."), parse(tokens))
      when /\A\{%\s*end/ then return nodes
      else nodes << Text.new(token) unless token.empty?
      end
    end
    nodes
  end

  def render(context)
    out = +""
    @nodes.each { |node| node.render(context, out) }
    out
  end
end

SOURCE = <<~PAGE
  <html><title>{{ shop.name | escape }}</title><body>
  {% for product in products %}<div class="product">
    <h2>{{ product.title | escape | upcase }}</h2> {{ forloop.index }}
    {% if product.sale %}<b>Sale!</b>{% end %}
    <p>{{ product.description | escape | truncate: 80 }}</p><span>{{ product.price | money }}</span>
    {% for tag in product.tags %}<i>{{ tag | escape }}</i>{% end %}
  </div>{% end %}</body></html>
PAGE

products = Array.new(60) do |i|
  { "title" => "Thing <#{i}>", "price" => i * 3.17, "sale" => i % 3 == 0, "tags" => %w[new cheap & rare].first(i % 4),
    "description" => "A thing \"with\" a long description that goes on for some time, number #{i}. " * 3 }
end
context = { "shop" => { "name" => "Shop & Co" }, "products" => products }
bytes = 0
Integer(ARGV[0] || 500).times do |i|
  template = Template.new(SOURCE) if i % 5 == 0 || template.nil?
  bytes += template.render(context).bytesize
end
puts bytes
