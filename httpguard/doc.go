// Package httpguard makes HTTP requests take effect once: a request with the header
// Idempotency-Key is served in a guarded transaction, and every repeat of it gets the
// stored answer.
//
//	guarded, err := httpguard.New(g, httpguard.Config{
//		Principal: func(r *http.Request) (string, error) { return userOf(r.Context()) },
//	})
//	if err != nil {
//		return err
//	}
//	mux.Handle("POST /payments", guarded.Wrap(http.HandlerFunc(pay)))
//
// In the handler, [Tx] is the transaction:
//
//	func pay(w http.ResponseWriter, r *http.Request) {
//		if err := httpguard.Tx(r.Context()).Create(&payment).Error; err != nil {
//			http.Error(w, "try again later", http.StatusServiceUnavailable)
//			return
//		}
//		w.WriteHeader(http.StatusCreated)
//	}
//
// What the handler does elsewhere, such as a call of a payment provider, is done at least
// once, as ever: give the provider an id that stays, by once.Request.Downstream.
//
// # What happens to an answer
//
// The handler's answer is kept back until the transaction has ended. One with a status below
// 400 is committed with what the handler wrote, and stored. Any other is sent with everything
// rolled back, and is not stored: a repeat runs the handler again. [Decide] says otherwise
// for one answer, [Config].Policy for all.
//
// A repeat gets the same status, the same body and the headers that the handler had set, with
// Idempotent-Replayed: true. What is outside of the handler is done anew: put the package
// behind authentication and rate limits, and inside of compression.
//
// The key is read as draft-ietf-httpapi-idempotency-key-header-07 says it, a quoted string,
// or bare, as many clients send it. A request is named by the key, the [Config].Principal and
// the operation: the same key of somebody else is another request. So is one of another
// operation.
//
// # What is answered otherwise
//
//	400  no key, several, or a bad one; a body that can't be read
//	409  the request is being served now; or it was served, and its answer is no longer kept
//	413  the body is too long
//	422  the key belongs to a request with other content
//	500  no principal, an answer that can't be stored
//	503  the lock or the database is not available, or failed meanwhile: asking again is safe
//
// The body is a problem detail (RFC 9457). A 503, and a 409 for a request that is being served,
// have Retry-After. Handlers that call Do, Apply or Once themselves can answer in the same way
// with [Error].
//
// While Redis is away and the guard's policy is FailClosed, a repeat gets 503 even if its answer
// is stored. Otherwise each rejected request would cost the database a read, at a time when
// clients retry most. Under DBOnly, stored answers are sent.
//
// # Limits
//
// The request's body and the answer are held in memory. A client that leaves does not end the
// operation: Config.Timeout does. Flushing, hijacking and trailers are not supported.
//
// The transaction holds a connection to the database while the handler runs. A handler that
// waits for others, such as a payment provider, needs a pool of the requests per second times
// the seconds that it takes: 20 payments/s of 3 s need 60 connections. A smaller pool limits
// them, and all others that use it wait, too: give such handlers a guard of their own, with
// the same Locker and a second pool to the same database. A request that waits for a
// connection for half of the lock's ttl gets 503.
package httpguard
