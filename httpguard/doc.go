// Package httpguard makes HTTP requests take effect once: a request with the header
// Idempotency-Key is served in a guarded transaction, and every repeat of it gets the
// stored answer.
//
//	b, err := belay.Open(ctx, belay.Config{
//		Service: "shop", DB: db, Redis: "redis://127.0.0.1:6379",
//		Once: &once.PurgerConfig{}, // creates the tables of requests, and deletes old ones
//	})
//	if err != nil {
//		return err
//	}
//	guarded, err := httpguard.New(b.Guard, httpguard.Config{
//		Principal: func(r *http.Request) (string, error) { return userOf(r.Context()) },
//	})
//	if err != nil {
//		return err
//	}
//	mux.Handle("POST /payments", guarded(http.HandlerFunc(pay)))
//
// In the handler, [guard.Tx] is the transaction:
//
//	func pay(w http.ResponseWriter, r *http.Request) {
//		if err := guard.Tx(r.Context()).Create(&payment).Error; err != nil {
//			http.Error(w, "try again later", http.StatusServiceUnavailable)
//			return
//		}
//		w.WriteHeader(http.StatusCreated)
//	}
//
// Effects elsewhere, such as a call of a payment provider, happen at least once: give the
// provider a stable id, by once.Request.Downstream of [guard.Request].
//
// # What happens to an answer
//
// The handler's answer is kept back until the transaction has ended. An answer with a status
// below 400 is committed with the handler's writes, and stored. Any other is sent after a
// rollback, and is not stored: a repeat runs the handler again. [Decide] changes that for one
// answer, [Config].Policy for all.
//
// A handler that returns without an answer has answered 200, as in net/http. A router that writes the
// errors of handlers later, when its middlewares have returned, must be wrapped so that it writes them
// inside: nothing else tells a failure from a success. Such are echo, and middlewares of gin that answer
// what c.Error has noted. Belay's repository has a wrapper for each, in interop/http. A wrapper that puts
// another writer into the router's context puts the old one back in a defer, or the answer to a panic is lost.
//
// A repeat gets the stored status, body, trailers and headers of the handler, with
// Idempotent-Replayed: true. Middlewares outside of the guard run again: put the package behind
// authentication and rate limits, and inside of compression.
//
// To a handler its writer behaves as that of net/http over HTTP/1.1 does, whatever the protocol:
//
//	stored and replayed     status, body, headers as they were when the status was set, trailers
//	sent once, not replayed Set-Cookie, Date, Connection, Keep-Alive, Proxy-Connection, TE,
//	                        Transfer-Encoding and Upgrade, and what [Config].KeepHeader excludes
//	not sent                informational responses (1xx), and headers set after the status
//	rolled back, 500        status 101, a body that is shorter than its Content-Length, an answer
//	                        longer than [Config].MaxAnswer
//	rolled back, cut        a panic, also that of WriteHeader for a status that is none
//	http.ErrNotSupported    Flush, Hijack, deadlines and full duplex of http.ResponseController
//
// A Flush of http.Flusher sets the status and sends nothing. The writer is no http.Hijacker, so
// that a WebSocket cannot be opened, and no http.Pusher or http.CloseNotifier. Set deadlines of
// the connection outside of the guard.
//
// # Which requests are the same
//
// The key is a quoted string, as in draft-ietf-httpapi-idempotency-key-header-07, or bare, as
// many clients send it. A request is named by the key, the [Config].Principal and the
// operation: a key sent by another principal is another request. So is a key of another
// operation, as of a mux that is mounted twice by http.StripPrefix.
//
// A repeat must have the same content: method, path, query, media type and body. The path and
// query are compared as they came to the server, and as they reach the handler; parts that a proxy
// has removed are not compared. The host is not compared, because a client may try another one. If
// your hosts or proxies stand for different sites, name the site in Principal. A multipart body is
// compared by the headers and contents of its parts, in their order, and not by its boundary, if
// there are at most 1000. Other bodies are compared by their bytes: set [Config].Print if a client
// may encode its JSON differently.
//
// Of a message that httprelay has sent only method, path, query and its Source are compared: its id is its
// key, and an operation that runs again, as after a lost commit, may send another body under the id of its
// first run. [RequestOf] compares its body, too: a call must not go out with another one.
// It is known by the header Belay-Message, which equals Idempotency-Key. A client that sends that header
// gives up the comparison of its own requests, and of no others: Principal keeps clients apart.
// A message that was served, and whose answer is no longer kept, gets 204: nothing but its effect counts.
//
// A middleware outside of the guard may have read the body. A form that it has parsed is
// compared. If it has left less than the client has sent, the request gets 500; it has to set
// Request.Body again, or to be inside of the guard. One that decodes the body leaves Content-Encoding,
// or removes Content-Length, or sets Request.ContentLength. A chunked body that it has read whole
// leaves no trace: such requests are all equal.
//
// # What is answered otherwise
//
//	400  no key, several, or a bad one; a body that cannot be read
//	409  the request is being served now; or it was served, and its answer is no longer kept;
//	     or it was not served, as a row that it inserts was there
//	413  the body is too long
//	422  the key belongs to a request with other content
//	500  no principal, too many keys, an answer that cannot be stored, a body that was read before;
//	     or the transaction was to end too early (guard.ErrTxControl): by a statement of the handler,
//	     which is refused; by a procedure of MySQL or MariaDB, or by a pooler that gives each
//	     statement any session, and a part of the handler's writes may be committed
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
// operation, and the context of the request does not end then: Config.Timeout does.
//
// The transaction holds a connection to the database while the handler runs. A handler that
// waits for others, such as a payment provider, needs a pool of the requests per second times
// the seconds that it takes: 20 payments/s of 3 s need 60 connections. A smaller pool limits
// them, and all others that use it wait, too: give such handlers a guard of their own, with
// the same Locker and a second pool to the same database. A request that waits for a
// connection for half of the lock's ttl gets 503.
package httpguard
