# Prints sections for the comparison with PostgreSQL: "## name", then lines.
require 'active_record'
require 'pg'

def section(name)
  puts "## #{name}"
  yield
rescue StandardError => e # the other sections are of interest all the same
  puts "FAILED #{e.class} #{e.message}"
end

section('connect') do
  ActiveRecord::Base.establish_connection(adapter: 'postgresql', host: '127.0.0.1', port: ENV['PGPORT'], username: 'postgres', database: 'lake',
                                          schema_search_path: 'shop,public', variables: { statement_timeout: 90_000 })
  puts ActiveRecord::Base.connection.active?
end
c = ActiveRecord::Base.connection
ActiveRecord::Base.time_zone_aware_attributes = true
section('introspection') do
  p c.tables.sort, c.views, c.data_sources.sort, (c.schema_names - ['skippr']).sort, c.current_database, c.current_schema, c.encoding
  %w[customers orders loads notes].each do |t|
    p t, c.columns(t).map { |x| [x.name, x.sql_type, x.type, x.limit, x.precision, x.scale, x.null, x.array, x.comment] }
    p c.primary_keys(t), c.indexes(t), c.foreign_keys(t), c.table_comment(t), c.table_exists?(t), c.pk_and_sequence_for(t)
  end
  p c.check_constraints('orders'), c.extensions - %w[plpgsql skippr], c.supports_insert_on_conflict?
end
section('extensions') { p c.extensions }

class Customer < ActiveRecord::Base
  self.table_name = 'customers'
end

class Order < ActiveRecord::Base
  self.table_name = 'orders'
  self.primary_key = 'id'
end

class Load < ActiveRecord::Base
  self.table_name = 'loads'
end

section('values') do
  Customer.order(:id).each { |x| p x.attributes.except('i').transform_values { |v| v.is_a?(Time) || v.is_a?(BigDecimal) ? v.to_s : v } }
end
section('intervals') { p Customer.order(:id).pluck(:i) }
section('queries') do
  p Order.count, Order.where('id < ?', 5).sum(:total).to_s, Order.group(:line).count.sort, Order.where(id: [1, 2]).pluck(:id, :line).sort
  p Order.order(id: :desc, line: :asc).limit(2).offset(1).map { |o| [o.id, o.line, o.at.utc.to_s] }
  p Order.exists?(id: 10**6), Order.maximum(:total).to_s, Order.where(at: Time.utc(2024, 1, 1)..Time.utc(2024, 1, 2)).count
  p Order.find_each(batch_size: 30).count
end
section('explain') { puts Order.where(id: 1).explain.lines.first[0, 16] }
section('write') do
  Load.transaction do
    Load.create!(id: 1, v: 'a', n: 1.5)
    Load.transaction(requires_new: true) do
      Load.create!(id: 2, v: 'b')
      raise ActiveRecord::Rollback
    end
  end
  begin
    Load.create!(id: 1)
  rescue ActiveRecord::RecordNotUnique => e
    puts e.message
  end
  Load.insert_all([{ id: 3, v: 'x' }, { id: 1, v: 'skipped' }])
  Load.upsert_all([{ id: 3, v: 'y' }])
  p Load.order(:id).map { |x| [x.id, x.v, x.n.to_s] }
  Load.find(1).update!(v: 'changed')
  p Load.find(1).v, Load.delete_all
end
section('schema dump') do
  require 'stringio'
  out = StringIO.new
  ActiveRecord::SchemaDumper.dump(c, out)
  puts out.string.lines.reject { |l| l.include?('extension') || l.include?('"ar_internal') }.join
end
