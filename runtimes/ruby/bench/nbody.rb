# Planets, as in the Benchmarks Game: floats in registers, and hardly an allocation.
class Planet
  attr_accessor :x, :y, :z, :vx, :vy, :vz, :mass

  def initialize(x, y, z, vx, vy, vz, mass)
    @x, @y, @z, @vx, @vy, @vz, @mass = x, y, z, vx, vy, vz, mass
  end

  def pull(others, from, dt)
    while from < others.size
      other = others[from]
      dx, dy, dz = @x - other.x, @y - other.y, @z - other.z
      mag = dt / (Math.sqrt(dx * dx + dy * dy + dz * dz)**3)
      mine, its = @mass * mag, other.mass * mag
      @vx -= dx * its
      @vy -= dy * its
      @vz -= dz * its
      other.vx += dx * mine
      other.vy += dy * mine
      other.vz += dz * mine
      from += 1
    end
    @x += dt * @vx
    @y += dt * @vy
    @z += dt * @vz
  end
end

bodies = [
  Planet.new(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 39.478),
  Planet.new(4.841, -1.160, -0.103, 0.606, 2.812, -0.025, 0.0377),
  Planet.new(8.343, 4.125, -0.403, -1.010, 1.825, 0.0084, 0.0113),
  Planet.new(12.894, -15.111, -0.223, 1.082, 0.868, -0.0108, 0.0017),
  Planet.new(15.379, -25.919, 0.179, 0.979, 0.594, -0.0347, 0.0020),
]
Integer(ARGV[0] || 150_000).times do
  bodies.each_with_index { |planet, i| planet.pull(bodies, i + 1, 0.01) }
end
puts format("%.6f", bodies[1].x)
