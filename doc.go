// Package belay opens the parts that make a business operation take effect once,
// and closes them in the right order.
//
//	b, err := belay.Open(ctx, belay.Config{
//		Service: "shop",
//		DB:      db, // a *gorm.DB
//		Redis:   "redis+cluster://10.0.0.1:6379,10.0.0.2:6379",
//		AMQP:    "amqp://user:password@10.0.0.9:5672/", // or Monitor, without a broker
//	})
//	if err != nil {
//		return err
//	}
//	defer b.Close(context.WithoutCancel(ctx))
//	err = b.Guard.Apply(ctx, "order:7", guard.Insert(&Order{No: "7"}))
//
// Everything that happens then is in package guard. Programs that want other parts, or
// parts of their own, make a [guard.Guard] with guard.New.
package belay
