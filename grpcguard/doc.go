// Package grpcguard makes gRPC calls take effect once: a call with the metadata
// idempotency-key is served in a guarded transaction, and every repeat of it gets the
// stored answer.
//
//	cfg := grpcguard.Config{
//		Match:     func(method string) bool { return method == payments.Payments_Charge_FullMethodName },
//		Principal: func(ctx context.Context) (string, error) { return userOf(ctx), nil },
//	}
//	guarded, err := grpcguard.UnaryServerInterceptor(g, cfg)
//	if err != nil {
//		return err
//	}
//	server := grpc.NewServer(grpc.ChainUnaryInterceptor(authenticate, guarded))
//	payments.RegisterPaymentsServer(server, service)
//	if err := grpcguard.Check(server, cfg); err != nil {
//		return err
//	}
//
// In the handler, [guard.Tx] is the transaction. Effects elsewhere, such as a call of a payment
// provider, happen at least once: give the provider a stable id, by once.Request.Downstream
// of [guard.Request].
//
// # What happens to an answer
//
// A response is committed with the handler's writes, and stored. An error of the handler is
// returned as it is; the transaction is rolled back and nothing is stored: a repeat runs the
// handler again. With guard.Refuse the handler's writes are rolled back, too, but the answer is
// stored: a response, or the message of a status, such as
//
//	return nil, guard.Refuse(status.New(codes.FailedPrecondition, "the card is declined").Proto())
//
// A repeat gets the stored answer, with the header idempotent-replayed: true. A call is named
// by the key, the [Config].Principal and the method. A repeat must have the same request: its
// deterministic encoding is compared, which may change with a new version of a generated
// package.
//
// # What is returned otherwise
//
//	InvalidArgument     no key, several, or a bad one; the key belongs to a call with another request
//	Aborted             the call is being served now
//	AlreadyExists       the call was served, and its answer is no longer kept, or of an unknown type
//	FailedPrecondition  the call was not served, as a row that it inserts was there
//	Internal            no principal, too many keys, an answer that cannot be stored; or the
//	                    transaction was to end too early (guard.ErrTxControl): by a statement of the
//	                    handler, which is refused; by a procedure of MySQL or MariaDB, or by a pooler
//	                    that gives each statement any session, and a part of the handler's writes may
//	                    be committed
//	Unavailable         the lock or the database is not available, or failed meanwhile
//
// InvalidArgument, AlreadyExists and FailedPrecondition have an ErrorInfo, whose reason is
// KEY_MISSING, KEY_INVALID, KEY_MISMATCH, ANSWER_FORGOTTEN or ROW_EXISTS. Aborted and Unavailable
// have a RetryInfo: calling again with the same key is safe.
//
// # Limits
//
// Streams are not supported: [Check] returns an error if Match selects one. Headers and trailers
// that a handler sets are sent with its answer, and not before: grpc.SendHeader only keeps them.
// They are not sent if the transaction cannot be committed, and not stored: a repeat does not get
// them. grpc.SetSendCompressor and grpc.ClientSupportedCompressors fail in a handler: call them in
// an interceptor outside of the guard. The type of a response must be in the global registry, as
// those of generated packages are. The transaction holds a connection to the database while the
// handler runs. A client that leaves does not end the operation: Config.Timeout does.
package grpcguard
