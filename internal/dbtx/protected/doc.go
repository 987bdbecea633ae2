// Package protected has the rows that a key protects: how a model names one, how they are
// found among the rows of a statement, and what was seen of them first.
package protected
