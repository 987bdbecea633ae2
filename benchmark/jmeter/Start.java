import com.thoughtworks.xstream.XStream;
import java.io.File;
import java.lang.reflect.Field;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;
import org.apache.jmeter.JMeter;
import org.apache.jmeter.save.SaveService;
import org.apache.jmeter.util.JMeterUtils;

/**
 * Starts Debian's JMeter 2.13. Its XStream is a later one, which refuses to read
 * any class that was not named as harmless, and so every test plan. Here the
 * classes of JMeter are named, and JMeter goes on by itself.
 */
public final class Start {
    public static void main(String[] args) throws Exception {
        String home = System.getProperty("jmeter.home");
        JMeterUtils.setJMeterHome(home);
        JMeterUtils.loadJMeterProperties(home + "/bin/jmeter.properties");
        for (String name : new String[] {"JMXSAVER", "JTLSAVER"}) {
            Field field = SaveService.class.getDeclaredField(name);
            field.setAccessible(true);
            ((XStream) field.get(null)).allowTypesByWildcard(new String[] {"org.apache.jmeter.**", "org.apache.jorphan.**"});
        }
        new JMeter().start(args);
    }
}
