"""What `orders.dig` calls."""
