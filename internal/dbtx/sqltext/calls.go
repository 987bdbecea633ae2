package sqltext

import (
	"slices"
	"strings"
)

// Calls reports whether a statement calls a function that may write, as one of the
// program's own can: any but those that are known.
func (st Statement) Calls() bool { return slices.ContainsFunc(st, token.callsUnknown) }

func (t token) callsUnknown() bool { return t.call && (t.quoted || !harmless[t.text]) }

// harmless are the words that may stand before a parenthesis in a statement that only
// reads: words of SQL, functions, types, and functions that write no row. After a function that is missing here, a conflict is judged after the rollback.
var harmless = func() map[string]bool {
	known := make(map[string]bool)
	for _, word := range strings.Fields(`
		ALL AND ANY AS BETWEEN BY CASE CROSS DISTINCT ELSE EXCEPT EXISTS FILTER FROM GROUPING HAVING IN INDEX INTERSECT IS
		JOIN KEY LATERAL LIKE LIMIT NOT OF OFFSET ON OR OVER ROW SELECT SETS SOME THEN TYPE UNION USING VALUES WHEN WHERE
		WITH WITHIN
		ABS ARRAY_AGG AVG CAST CEIL CHAR_LENGTH COALESCE CONCAT CONNECTION_ID COUNT CURRENT_TIMESTAMP DATABASE DATE
		DATE_FORMAT DATE_TRUNC EXTRACT FLOOR GREATEST GROUP_CONCAT IF IFNULL JSON_EXTRACT LAST_INSERT_ID LEAST LEFT LENGTH
		LOWER MAX MIN MOD NOW NULLIF RANK REPLACE RIGHT ROUND ROW_COUNT ROW_NUMBER SET_CONFIG STRING_AGG SUBSTR SUBSTRING
		SUM TRIM UNNEST UPPER VERSION YEAR
		CHAR DECIMAL NUMERIC VARCHAR
		CURRVAL GEN_RANDOM_UUID GET_LOCK LASTVAL NEXTVAL PG_ADVISORY_XACT_LOCK PG_TRY_ADVISORY_XACT_LOCK RAND RANDOM
		RELEASE_LOCK UUID
	`) {
		known[word] = true
	}
	return known
}()
