package deadletter

import amqp "github.com/rabbitmq/amqp091-go"

// LetterOf makes a letter of a message.
func LetterOf(d *amqp.Delivery) Letter { return letter(d, "") }
