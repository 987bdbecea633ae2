package sqltext

import "strings"

// Calls reports whether a statement calls a function that may write, as one of the
// program's own can: any but those that are known.
func (st Statement) Calls() bool {
	for i, t := range st.tokens {
		if t.callsUnknown() && !st.listsColumns(i) {
			return true
		}
	}
	return false
}

// listsColumns reports whether the parenthesis behind a token has the columns of an INSERT, behind
// its table or ON CONFLICT.
func (st Statement) listsColumns(i int) bool {
	if i < 2 || st.words[0] != "INSERT" {
		return false
	}
	if before := st.tokens[i-1]; st.tokens[i].text == "CONFLICT" {
		return before.text == "ON"
	}
	table := st.index("INTO") + 1
	return i == table || i == table+1 && st.tokens[table].dot
}

// callsUnknown: a function of a schema is no known one, whatever its name.
func (t token) callsUnknown() bool { return t.call && (t.quoted || t.owned || !harmless[t.text]) }

// harmless are the words that may stand before a parenthesis in a statement that only
// reads: words of SQL, functions, types, and functions that write no row. A function that
// is missing here may have written: a conflict after it is judged after the rollback, and
// an operation that did nothing else counts as one that wrote.
var harmless = func() map[string]bool {
	known := make(map[string]bool)
	for word := range strings.FieldsSeq(`
		AGAINST ALL AND ANY ARRAY AS BETWEEN BY CASE CROSS DISTINCT ELSE EXCEPT EXISTS EXPLAIN FILTER FROM GROUPING HAVING IN
		INDEX INTERSECT INTERVAL IS JOIN KEY LATERAL LIKE LIMIT MATCH MATERIALIZED NOT OF OFFSET ON OR OVER PARTITION ROW
		SELECT SETS SOME THEN TYPE UNION USING VALUES WHEN WHERE WITH WITHIN
		ABS ARRAY_AGG AVG CAST CEIL CHAR_LENGTH COALESCE CONCAT CONNECTION_ID COUNT CURRENT_TIMESTAMP DATABASE DATE
		DATE_FORMAT DATE_TRUNC EXTRACT FLOOR GREATEST GROUP_CONCAT IF IFNULL JSON_EXTRACT LAST_INSERT_ID LEAST LEFT LENGTH
		LOWER MAX MIN MOD NOW NULLIF RANK REPLACE RIGHT ROUND ROW_COUNT ROW_NUMBER SET_CONFIG STRING_AGG SUBSTR SUBSTRING
		SUM TRIM UNNEST UPPER VERSION YEAR
		BIT_AND BIT_LENGTH BIT_OR BOOL_AND BOOL_OR CEILING CONCAT_WS CONVERT CURDATE CURRENT_DATE CURTIME DATEDIFF DATETIME
		DATE_ADD DATE_PART DATE_SUB DAY DAYOFMONTH DAYOFWEEK DENSE_RANK EXP FIRST_VALUE FORMAT FROM_UNIXTIME HEX HOUR
		INSTR ISNULL JSONB_AGG JSONB_BUILD_OBJECT JSON_AGG JSON_ARRAY JSON_ARRAYAGG JSON_BUILD_OBJECT JSON_CONTAINS
		JSON_LENGTH JSON_OBJECT JSON_UNQUOTE JSON_VALUE LAG LAST_DAY LAST_VALUE LEAD LN LOG LPAD LTRIM MD5 MINUTE MONTH
		NTILE OCTET_LENGTH PERCENT_RANK POSITION POW POWER REGEXP_REPLACE RPAD RTRIM SHA1 SHA2 SIGN SPLIT_PART SQRT STDDEV
		STRFTIME STR_TO_DATE SUBSTRING_INDEX TIMESTAMP TIMESTAMPDIFF TO_CHAR TO_DATE TO_JSON TO_TIMESTAMP TRUNC
		UNIX_TIMESTAMP UTC_TIMESTAMP VARIANCE
		CHAR DECIMAL NUMERIC VARCHAR
		CURRVAL GEN_RANDOM_UUID GET_LOCK LASTVAL NEXTVAL PG_ADVISORY_XACT_LOCK PG_TRY_ADVISORY_XACT_LOCK RAND RANDOM
		RELEASE_LOCK UUID
	`) {
		known[word] = true
	}
	return known
}()
