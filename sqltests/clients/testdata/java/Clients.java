import java.io.StringReader;
import java.io.StringWriter;
import java.sql.*;
import java.util.*;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;

/** Prints sections for the comparison with PostgreSQL: "## name", then lines. */
public class Clients {
  interface Run {
    void run() throws Exception;
  }

  static void section(String name, Run r) {
    System.out.println("## " + name);
    try {
      r.run();
    } catch (Exception e) { // the other sections are of interest all the same
      System.out.println("FAILED " + e);
    }
  }

  static void refused(Run r) {
    try {
      r.run();
      System.out.println("not refused");
    } catch (SQLException e) {
      System.out.println(e.getSQLState() + " " + e.getMessage());
    } catch (Exception e) {
      System.out.println("FAILED " + e);
    }
  }

  static void show(ResultSet r, String... columns) throws SQLException {
    ResultSetMetaData m = r.getMetaData();
    while (r.next()) {
      StringJoiner j = new StringJoiner(" | ");
      if (columns.length > 0) {
        for (String c : columns) j.add(String.valueOf(r.getObject(c)));
      } else {
        for (int i = 1; i <= m.getColumnCount(); i++) j.add(String.valueOf(text(r, i)));
      }
      System.out.println(j);
    }
    r.close();
  }

  static Object text(ResultSet r, int i) throws SQLException {
    Object o = r.getObject(i);
    if (o instanceof byte[] b) return Arrays.toString(b);
    if (o instanceof java.sql.Array a) return Arrays.deepToString((Object[]) a.getArray());
    return o;
  }

  static String url(String more) {
    return "jdbc:postgresql://127.0.0.1:" + System.getenv("PGPORT") + "/lake?user=postgres&sslmode=disable&connectTimeout=0" + more;
  }

  static final String CUSTOMERS = "SELECT id, name, email, tags, paid, doc, u, d, f4, f8, i2, b, ts, tz, t, n, big, i, ints, c FROM shop.customers ORDER BY id";

  public static void main(String[] a) throws Exception {
    TimeZone.setDefault(TimeZone.getTimeZone("UTC"));
    for (String mode : new String[] {"extended", "simple", "extendedForPrepared", "extendedCacheEverything"}) {
      try (Connection c = DriverManager.getConnection(url("&preferQueryMode=" + mode))) {
        section(mode + " values", () -> show(c.createStatement().executeQuery(CUSTOMERS)));
        section(mode + " prepared", () -> {
          try (PreparedStatement p = c.prepareStatement("SELECT ?::int + 1, ?, ?::numeric, ?::timestamptz, name FROM shop.customers WHERE id = ?")) {
            for (int i = 1; i < 9; i++) { // from the fifth on by a name, and in binary
              p.setInt(1, i);
              p.setString(2, "it's");
              p.setBigDecimal(3, null);
              p.setTimestamp(4, new Timestamp(0));
              p.setLong(5, i % 3 + 1);
              show(p.executeQuery());
            }
          }
        });
        section(mode + " transactions", () -> transactions(c));
        section(mode + " several statements", () -> {
          Statement s = c.createStatement();
          boolean more = s.execute("SELECT 1; SELECT 2, 3");
          while (more) {
            show(s.getResultSet());
            more = s.getMoreResults();
          }
        });
      }
    }
    try (Connection c = DriverManager.getConnection(url("&prepareThreshold=-1"))) {
      section("binary values", () -> show(c.prepareStatement(CUSTOMERS).executeQuery()));
      section("fetch size", () -> {
        c.setAutoCommit(false);
        Statement s = c.createStatement();
        s.setFetchSize(7);
        ResultSet r = s.executeQuery("SELECT id, line FROM shop.orders ORDER BY id, line");
        int n = 0, sum = 0;
        while (r.next()) {
          n++;
          sum += r.getInt(1);
        }
        System.out.println(n + " " + sum);
        c.commit();
        c.setAutoCommit(true);
      });
      section("scrollable", () -> {
        ResultSet r = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_READ_ONLY).executeQuery("SELECT id FROM shop.customers ORDER BY id");
        r.last();
        System.out.println(r.getLong(1) + " " + r.getRow());
        r.absolute(1);
        System.out.println(r.getLong(1));
      });
      metadata(c);
      section("result set metadata", () -> {
        ResultSetMetaData m = c.createStatement().executeQuery("SELECT o.*, 1 AS one FROM shop.orders o LIMIT 0").getMetaData();
        for (int i = 1; i <= m.getColumnCount(); i++) {
          System.out.println(m.getColumnName(i) + " " + m.getColumnTypeName(i) + " " + m.getPrecision(i) + " " + m.getScale(i) + " "
              + ((org.postgresql.PGResultSetMetaData) m).getBaseTableName(i) + " " + m.isNullable(i) + " " + m.isAutoIncrement(i) + " " + m.getColumnClassName(i));
        }
      });
      section("parameter metadata", () -> {
        ParameterMetaData m = c.prepareStatement("SELECT * FROM shop.orders WHERE id = ? AND total > ?").getParameterMetaData();
        System.out.println(m.getParameterCount() + " " + m.getParameterTypeName(1) + " " + m.getParameterTypeName(2));
      });
      section("copy", () -> {
        CopyManager copy = c.unwrap(PGConnection.class).getCopyAPI();
        System.out.println(copy.copyIn("COPY loads FROM STDIN (FORMAT csv)", new StringReader("1,a,1.5\n2,,\n")));
        StringWriter w = new StringWriter();
        System.out.println(copy.copyOut("COPY (SELECT * FROM loads ORDER BY id) TO STDOUT", w) + " " + w);
        c.createStatement().execute("TRUNCATE loads");
      });
      section("batch", () -> {
        PreparedStatement p = c.prepareStatement("INSERT INTO loads VALUES (?, ?, ?)");
        for (int i = 0; i < 5; i++) {
          p.setLong(1, i);
          p.setString(2, "v" + i);
          p.setBigDecimal(3, java.math.BigDecimal.valueOf(i));
          p.addBatch();
        }
        System.out.println(Arrays.toString(p.executeBatch()));
        p.setLong(1, 1);
        p.addBatch();
        refused(p::executeBatch);
        System.out.println(c.createStatement().executeUpdate("DELETE FROM loads"));
      });
      section("generated keys", () -> {
        PreparedStatement p = c.prepareStatement("INSERT INTO loads VALUES (1, 'a', 1)", new String[] {"id", "v"});
        p.executeUpdate();
        show(p.getGeneratedKeys());
        c.createStatement().execute("TRUNCATE loads");
      });
      section("errors", () -> {
        for (String sql : new String[] {"SELECT 1/0", "SELECT * FROM nosuch", "SELEC 1", "SELECT nosuch(1)", "INSERT INTO loads VALUES (NULL)"}) {
          refused(() -> c.createStatement().execute(sql));
        }
      });
      section("cancel", () -> {
        Statement s = c.createStatement();
        s.setQueryTimeout(1);
        refused(() -> s.execute("SELECT pg_sleep(60)"));
      });
      section("read only", () -> {
        c.setReadOnly(true);
        c.setAutoCommit(false);
        refused(() -> c.createStatement().execute("INSERT INTO loads VALUES (1)"));
        c.rollback();
        c.setAutoCommit(true);
        c.setReadOnly(false);
        System.out.println(c.getTransactionIsolation() + " " + c.isValid(600) + " " + c.getSchema() + " " + c.getCatalog());
      });
    }
    section("currentSchema and options", () -> {
      try (Connection c = DriverManager.getConnection(url("&currentSchema=shop&ApplicationName=app&options=-c%20statement_timeout=90000"))) {
        show(c.createStatement().executeQuery("SELECT count(*) FROM orders"));
        for (String s : new String[] {"search_path", "application_name", "statement_timeout"}) show(c.createStatement().executeQuery("SHOW " + s));
      }
    });
  }

  static void transactions(Connection c) throws Exception {
    c.setAutoCommit(false);
    c.createStatement().executeUpdate("INSERT INTO loads VALUES (1, 'a', 1)");
    Savepoint s = c.setSavepoint("s");
    refused(() -> c.createStatement().executeUpdate("INSERT INTO loads VALUES (1, 'a', 1)"));
    refused(() -> c.createStatement().executeQuery("SELECT 1"));
    c.rollback(s);
    show(c.createStatement().executeQuery("SELECT * FROM loads"));
    c.rollback();
    c.setAutoCommit(true);
    show(c.createStatement().executeQuery("SELECT count(*) FROM loads"));
  }

  static void metadata(Connection c) throws Exception {
    DatabaseMetaData m = c.getMetaData();
    section("tables", () -> show(m.getTables(null, "shop", "%", null), "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE", "REMARKS"));
    section("tables by type", () -> show(m.getTables(null, "s%p", "o%", new String[] {"TABLE", "VIEW"}), "TABLE_SCHEM", "TABLE_NAME", "TABLE_TYPE"));
    section("columns", () -> show(m.getColumns(null, "shop", "%", "%"), "TABLE_NAME", "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "COLUMN_SIZE", "DECIMAL_DIGITS",
        "NULLABLE", "ORDINAL_POSITION", "IS_NULLABLE", "IS_AUTOINCREMENT", "IS_GENERATEDCOLUMN"));
    section("primary keys", () -> show(m.getPrimaryKeys(null, "shop", "orders"), "COLUMN_NAME", "KEY_SEQ", "PK_NAME"));
    section("indexes", () -> show(m.getIndexInfo(null, "shop", "orders", false, true), "INDEX_NAME", "COLUMN_NAME", "NON_UNIQUE", "TYPE", "ORDINAL_POSITION", "ASC_OR_DESC"));
    section("unique indexes", () -> show(m.getIndexInfo(null, "shop", "Odd Names", true, true), "INDEX_NAME", "COLUMN_NAME", "NON_UNIQUE"));
    section("keys", () -> {
      show(m.getImportedKeys(null, "shop", "orders"));
      show(m.getExportedKeys(null, "shop", "orders"));
      show(m.getCrossReference(null, "shop", "orders", null, "shop", "customers"));
    });
    section("schemas", () -> {
      ResultSet r = m.getSchemas();
      while (r.next()) if (!r.getString(1).equals("skippr")) System.out.println(r.getString(1));
      show(m.getCatalogs().getMetaData().getColumnCount() == 1 ? m.getTableTypes() : null);
    });
    section("types", () -> {
      ResultSet r = m.getTypeInfo();
      Set<String> wanted = Set.of("int4", "text", "numeric", "jsonb", "timestamptz", "_int4", "uuid");
      // The driver asks without ORDER BY.
      Set<String> types = new TreeSet<>();
      while (r.next()) if (wanted.contains(r.getString(1))) types.add(r.getString(1) + " " + r.getInt(2) + " " + r.getInt(3));
      types.forEach(System.out::println);
      show(m.getUDTs(null, "shop", "%", null));
    });
    section("best row", () -> {
      show(m.getBestRowIdentifier(null, "shop", "orders", DatabaseMetaData.bestRowSession, false), "COLUMN_NAME", "TYPE_NAME");
      show(m.getVersionColumns(null, "shop", "orders"), "COLUMN_NAME");
    });
    section("functions", () -> {
      show(m.getFunctions(null, "pg_catalog", "date\\_trunc"), "FUNCTION_SCHEM", "FUNCTION_NAME", "FUNCTION_TYPE");
      show(m.getFunctionColumns(null, "pg_catalog", "date\\_trunc", "%"), "COLUMN_NAME", "TYPE_NAME", "ORDINAL_POSITION");
      show(m.getProcedures(null, "shop", "%"));
    });
    section("privileges", () -> {
      show(m.getTablePrivileges(null, "shop", "orders"), "TABLE_NAME", "GRANTOR", "GRANTEE", "PRIVILEGE");
      show(m.getColumnPrivileges(null, "shop", "orders", "id"), "COLUMN_NAME", "GRANTEE", "PRIVILEGE");
    });
    section("facts", () -> System.out.println(m.getDatabaseMajorVersion() + " " + m.getMaxColumnNameLength() + " " + m.getIdentifierQuoteString() + " "
        + m.getMaxConnections() / 1_000_000 + " " + m.getUserName() + " " + m.supportsTransactions() + " " + m.getSQLKeywords().length() + " " + m.getDefaultTransactionIsolation()));
    section("client info", () -> {
      show(m.getClientInfoProperties(), "NAME");
      c.setClientInfo("ApplicationName", "named");
      System.out.println(c.getClientInfo("ApplicationName"));
    });
  }
}
